//! Block devices of a machine: `[device.NAME]`.

use crate::machine::{
    Device, DeviceKind, Driver, Elevator, Machine, PAGE_SIZE, VIRTIO_SEGMENTS, WriteErrors,
};

use super::error::{Problem, Result};
use super::fields::Fields;
use super::machine::{named, put};
use super::scope::Scope;
use super::server;
use super::suggest;
use super::tree::{Entry, Node, shorten};

/// Fields of a device.
pub(super) const KEYS: [&str; 30] = [
    "kind",
    "rotational",
    "size",
    "position_read",
    "position_write",
    "command_read",
    "command_write",
    "page",
    "rate",
    "page_write",
    "rate_write",
    "skip_pages",
    "read_ahead",
    "erase_block",
    "open_blocks",
    "queue_depth",
    "parallelism",
    "max_request",
    "max_segments",
    "driver",
    "nr_requests",
    "elevator",
    "members",
    "chunk",
    "min_ratio",
    "max_ratio",
    "strictlimit",
    "written_share",
    "write_errors",
    "server",
];

/// Reads the devices of a machine. One with a `kind` is described in full: it replaces the one of its name, or is
/// added. One without changes the fields of that of its name.
pub(super) fn read_all(parts: &Node, machine: &mut Machine, scope: &Scope<'_>) -> Result<()> {
    for entry in named(parts, "device")? {
        let described = entry.node.get("kind").is_some();
        let mut known = machine.devices.iter();
        let base = known.find(|device| !described && device.name == entry.key);
        if let (None, false, false) = (base, described, machine.devices.is_empty()) {
            return Err(nothing_to_change(entry, &machine.devices));
        }
        let device = device(entry, base, scope)?;
        put(&mut machine.devices, device, |other| {
            other.name == entry.key
        });
        let kept: u64 = machine.devices.iter().map(|device| device.min_ratio).sum();
        if kept >= 100 {
            return Err(Problem::new(
                entry.key_span,
                format!("expected `min_ratio` of all devices below 100 together, found {kept}"),
                "the kernel refuses to keep all of the dirty threshold for some devices",
            ));
        }
    }
    Ok(())
}

fn nothing_to_change(entry: &Entry, devices: &[Device]) -> Problem {
    let names = devices.iter().map(|device| device.name.as_str());
    let known = suggest::help(&entry.key, names);
    Problem::new(
        entry.key_span,
        format!(
            "the machine has no device `{}` to change",
            shorten(&entry.key)
        ),
        format!("a new device begins with kind = \"hdd\" or \"ssd\"; {known}"),
    )
}

/// One device: what `entry` says, on top of `base` if it changes that.
fn device(entry: &Entry, base: Option<&Device>, scope: &Scope<'_>) -> Result<Device> {
    const KINDS: [(&str, DeviceKind); 2] = [("hdd", DeviceKind::Hdd), ("ssd", DeviceKind::Ssd)];
    let owner = format!("the device `{}`", entry.key);
    let fields = Fields::open(&entry.node, entry.key_span, &owner, &KEYS, scope)?;
    let mut device = match base {
        Some(base) => base.clone(),
        None => {
            let kind = fields.need("kind", "kind = \"hdd\" or \"ssd\"", |scope, node| {
                scope.choice(node, "a kind of device", &KINDS)
            })?;
            Device::bare(&entry.key, kind)
        }
    };
    transfers(&fields, &mut device, base.is_none())?;
    times(&fields, &mut device, base.is_none())?;
    sizes(&fields, &mut device, base.is_none())?;
    queue(&fields, &mut device)?;
    dirty(&fields, &mut device)?;
    if let Some(node) = fields.node("server") {
        if base.is_some_and(|base| base.server.is_none()) {
            let help = "describe the device in full, beginning with its kind";
            fields.refuse(
                "server",
                "but the device is one of the machine itself",
                help,
            )?;
        }
        device.server = Some(server::read(node, scope)?);
    }
    if device.server.is_some() {
        server::refuse_local(&fields)?;
    }
    together(&fields, &device)?;
    Ok(device)
}

/// How long a page is on its way. Writes are as fast as reads unless something else is said.
fn transfers(fields: &Fields<'_, '_>, device: &mut Device, fresh: bool) -> Result<()> {
    let same = device.page_write_ns == device.page_ns;
    match transfer(fields, "page", "rate")? {
        Some(time) => device.page_ns = time,
        None if fresh => {
            return Err(fields.missing("page", "page = \"42.4us\", or rate = \"96.5MB/s\""));
        }
        None => {}
    }
    match transfer(fields, "page_write", "rate_write")? {
        Some(time) => device.page_write_ns = time,
        None if same => device.page_write_ns = device.page_ns,
        None => {}
    }
    Ok(())
}

/// Times of a command, which have no defaults.
fn times(fields: &Fields<'_, '_>, device: &mut Device, fresh: bool) -> Result<()> {
    let slots = [
        ("position_read", "7.56ms", &mut device.position_read_ns),
        ("position_write", "3.78ms", &mut device.position_write_ns),
        ("command_read", "62us", &mut device.command_read_ns),
        ("command_write", "62us", &mut device.command_write_ns),
    ];
    for (key, example, slot) in slots {
        match fields.maybe(key, Scope::work)? {
            Some(time) => *slot = time,
            None if fresh => return Err(fields.missing(key, &format!("{key} = \"{example}\""))),
            None => {}
        }
    }
    Ok(())
}

/// What the device is made of.
fn sizes(fields: &Fields<'_, '_>, device: &mut Device, fresh: bool) -> Result<()> {
    device.size = match fields.maybe("size", Scope::some_size)? {
        Some(size) => size,
        None if fresh => return Err(fields.missing("size", "size = \"64G\"")),
        None => device.size,
    };
    device.rotational = fields.or("rotational", Scope::flag, device.rotational)?;
    device.skip_pages = fields.or("skip_pages", Scope::count, device.skip_pages)?;
    device.read_ahead = fields.or("read_ahead", Scope::pages, device.read_ahead)?;
    device.erase_block = fields.or("erase_block", Scope::pages, device.erase_block)?;
    device.open_blocks = fields.or("open_blocks", up_to::<64>, device.open_blocks)?;
    device.members = fields.or("members", up_to::<64>, device.members)?;
    device.chunk = fields.or("chunk", Scope::pages, device.chunk)?;
    if let Some(errors) = fields.maybe("write_errors", |scope, node| write_errors(node, scope))? {
        device.write_errors = Some(errors);
    }
    Ok(())
}

/// How requests come to the device.
fn queue(fields: &Fields<'_, '_>, device: &mut Device) -> Result<()> {
    const ELEVATORS: [(&str, Elevator); 3] = [
        ("noop", Elevator::Noop),
        ("deadline", Elevator::Deadline),
        ("cfq", Elevator::Cfq),
    ];
    const DRIVERS: [(&str, Driver); 1] = [("virtio-blk", Driver::VirtioBlk)];
    if let Some(node) = fields.node("driver") {
        device.driver = Some(fields.scope.choice(node, "a driver", &DRIVERS)?);
    }
    device.queue_depth = fields.or("queue_depth", up_to::<65_536>, device.queue_depth)?;
    device.parallelism = fields.or("parallelism", up_to::<65_536>, device.parallelism)?;
    if let Some(bytes) = fields.maybe("max_request", Scope::pages)? {
        device.max_request = Some(bytes);
    }
    let segments_max = match device.driver {
        Some(Driver::VirtioBlk) => VIRTIO_SEGMENTS,
        None => 65_535,
    };
    let segments = |scope: &Scope<'_>, node: &Node| scope.some_up_to(node, segments_max);
    device.max_segments = fields.or("max_segments", segments, device.max_segments)?;
    device.nr_requests = fields.or("nr_requests", up_to::<65_536>, device.nr_requests)?;
    let elevator = |scope: &Scope<'_>, node: &Node| scope.choice(node, "an elevator", &ELEVATORS);
    device.elevator = fields.or("elevator", elevator, device.elevator)?;
    Ok(())
}

/// What dirty throttling knows of the device.
fn dirty(fields: &Fields<'_, '_>, device: &mut Device) -> Result<()> {
    device.min_ratio = fields.or("min_ratio", percent, device.min_ratio)?;
    device.max_ratio = fields.or("max_ratio", percent, device.max_ratio)?;
    device.strictlimit = fields.or("strictlimit", Scope::flag, device.strictlimit)?;
    device.written_share = fields.or("written_share", percent, device.written_share)?;
    Ok(())
}

/// Fields that do not go together.
fn together(fields: &Fields<'_, '_>, device: &Device) -> Result<()> {
    if device.members == 1 {
        fields.refuse("chunk", "but the device has one member", "add members = 12")?;
    }
    if device.members > 1 && device.write_errors.is_some() {
        for key in ["write_errors", "members"] {
            fields.refuse(
                key,
                "but the model cannot tell which member fails",
                "remove `members` or `write_errors`",
            )?;
        }
    }
    if device.erase_block == 0 {
        fields.refuse(
            "open_blocks",
            "but the device hides its erase blocks",
            "add erase_block = \"4M\"",
        )?;
    }
    if device.min_ratio > device.max_ratio {
        return Err(Problem::new(
            fields.span(),
            format!(
                "expected `min_ratio` of the device `{}` up to `max_ratio`, found {} and {}",
                device.name, device.min_ratio, device.max_ratio
            ),
            "lower `min_ratio` or raise `max_ratio`",
        ));
    }
    Ok(())
}

/// A count from 1 to `MAX`.
fn up_to<const MAX: u32>(scope: &Scope<'_>, node: &Node) -> Result<u32> {
    scope.some_up_to(node, MAX)
}

/// Index of the device that a node names.
pub(super) fn index(scope: &Scope<'_>, node: &Node, devices: &[Device]) -> Result<usize> {
    let name = scope.text(node)?;
    devices
        .iter()
        .position(|device| device.name == name)
        .ok_or_else(|| {
            Problem::new(
                node.span,
                format!("unknown device `{}`", shorten(&name)),
                suggest::help(&name, devices.iter().map(|device| device.name.as_str())),
            )
        })
}

/// Which writes fail; all of them if nothing is said.
fn write_errors(node: &Node, scope: &Scope<'_>) -> Result<WriteErrors> {
    const KEYS: [&str; 5] = ["start", "size", "after", "every", "count"];
    let fields = Fields::open(node, node.span, "`write_errors`", &KEYS, scope)?;
    Ok(WriteErrors {
        start: fields.or("start", Scope::page_offset, 0)?,
        size: fields.or("size", Scope::pages, u64::MAX)?,
        after: fields.or("after", Scope::size, 0)?,
        every: fields.or("every", Scope::some, 1)?,
        count: fields.or("count", Scope::some, u64::MAX)?,
    })
}

/// A part in percent.
fn percent(scope: &Scope<'_>, node: &Node) -> Result<u64> {
    let value = scope.count(node)?;
    match value <= 100 {
        true => Ok(value),
        false => Err(Problem::new(
            node.span,
            format!("expected a percentage from 0 to 100, found {value}"),
            "write a part of the dirty threshold in percent",
        )),
    }
}

/// Time of a page, given as such or as a rate.
pub(super) fn transfer(fields: &Fields<'_, '_>, time: &str, rate: &str) -> Result<Option<u64>> {
    fields.either(time, rate)?;
    if let Some(time) = fields.maybe(time, Scope::work)? {
        return Ok(Some(time));
    }
    let rate = fields.maybe(rate, |scope, node| {
        // A page a minute.
        let least = PAGE_SIZE.div_ceil(60);
        match scope.data_rate(node)? {
            rate if rate >= least => Ok(rate),
            _ => Err(Problem::new(
                node.span,
                format!(
                    "expected at least {least} bytes a second, found {}",
                    node.written()
                ),
                "write a data rate, such as \"96.5MB/s\"",
            )),
        }
    })?;
    Ok(rate.map(|rate| PAGE_SIZE * 1_000_000_000 / rate))
}

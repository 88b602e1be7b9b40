//! Block devices of a machine: `[device.NAME]`.

use crate::machine::{
    Device, DeviceKind, Driver, Elevator, MAX_SEGMENTS, Machine, PAGE_SIZE, VIRTIO_SEGMENTS,
    WriteErrors,
};

use super::error::{Problem, Result};
use super::fields::Fields;
use super::machine::{named, put};
use super::scope::Scope;
use super::server;
use super::suggest;
use super::tree::{Entry, Node, shorten};

/// Reads the devices of a machine: they replace those of the same name, or are added.
pub(super) fn read_all(parts: &Node, machine: &mut Machine, scope: &Scope<'_>) -> Result<()> {
    for entry in named(parts, "device")? {
        let device = device(entry, scope)?;
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

fn device(entry: &Entry, scope: &Scope<'_>) -> Result<Device> {
    const KEYS: [&str; 30] = [
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
    const KINDS: [(&str, DeviceKind); 2] = [("hdd", DeviceKind::Hdd), ("ssd", DeviceKind::Ssd)];
    const ELEVATORS: [(&str, Elevator); 3] = [
        ("noop", Elevator::Noop),
        ("deadline", Elevator::Deadline),
        ("cfq", Elevator::Cfq),
    ];
    const DRIVERS: [(&str, Driver); 1] = [("virtio-blk", Driver::VirtioBlk)];
    let owner = format!("the device `{}`", entry.key);
    let fields = Fields::open(&entry.node, entry.key_span, &owner, &KEYS, scope)?;
    let kind = fields.need("kind", "kind = \"hdd\" or \"ssd\"", |scope, node| {
        scope.choice(node, "a kind of device", &KINDS)
    })?;
    let members = fields.or("members", |scope, node| scope.some_up_to(node, 64), 1)?;
    if members == 1 {
        fields.refuse("chunk", "but the device has one member", "add members = 12")?;
    }
    let page_ns = match transfer(&fields, "page", "rate")? {
        Some(time) => time,
        None => {
            return Err(fields.missing("page", "page = \"42.4us\", or rate = \"96.5MB/s\""));
        }
    };
    let page_write_ns = transfer(&fields, "page_write", "rate_write")?.unwrap_or(page_ns);
    if members > 1 {
        fields.refuse(
            "write_errors",
            "but the model cannot tell which member fails",
            "remove `members` or `write_errors`",
        )?;
    }
    if fields.node("erase_block").is_none() {
        fields.refuse(
            "open_blocks",
            "but the device hides its erase blocks",
            "add erase_block = \"4M\"",
        )?;
    }
    let (min_ratio, max_ratio) = (
        fields.or("min_ratio", percent, 0)?,
        fields.or("max_ratio", percent, 100)?,
    );
    if min_ratio > max_ratio {
        return Err(Problem::new(
            entry.key_span,
            format!(
                "expected `min_ratio` of {owner} up to `max_ratio`, found {min_ratio} and {max_ratio}"
            ),
            "lower `min_ratio` or raise `max_ratio`",
        ));
    }
    let driver = match entry.node.get("driver") {
        Some(node) => Some(scope.choice(node, "a driver", &DRIVERS)?),
        None => None,
    };
    let segments_max = driver.map_or(65_535, |Driver::VirtioBlk| VIRTIO_SEGMENTS);
    let server = match entry.node.get("server") {
        Some(node) => Some(server::read(node, &fields, scope)?),
        None => None,
    };
    Ok(Device {
        name: entry.key.clone(),
        kind,
        rotational: fields.or("rotational", Scope::flag, kind == DeviceKind::Hdd)?,
        size: fields.need("size", "size = \"64G\"", Scope::some_size)?,
        position_read_ns: fields.need(
            "position_read",
            "position_read = \"7.56ms\"",
            Scope::duration,
        )?,
        position_write_ns: fields.need(
            "position_write",
            "position_write = \"3.78ms\"",
            Scope::duration,
        )?,
        command_read_ns: fields.need("command_read", "command_read = \"62us\"", Scope::duration)?,
        command_write_ns: fields.need(
            "command_write",
            "command_write = \"62us\"",
            Scope::duration,
        )?,
        page_ns,
        page_write_ns,
        skip_pages: fields.or("skip_pages", Scope::count, 0)?,
        read_ahead: fields.or("read_ahead", Scope::pages, 0)?,
        erase_block: fields.or("erase_block", Scope::pages, 0)?,
        open_blocks: fields.or("open_blocks", |scope, node| scope.some_up_to(node, 64), 1)?,
        queue_depth: fields.or(
            "queue_depth",
            |scope, node| scope.some_up_to(node, 65_536),
            31,
        )?,
        parallelism: fields.or(
            "parallelism",
            |scope, node| scope.some_up_to(node, 65_536),
            1,
        )?,
        max_request: match entry.node.get("max_request") {
            Some(node) => Some(scope.pages(node)?),
            None => None,
        },
        max_segments: fields.or(
            "max_segments",
            |scope, node| scope.some_up_to(node, segments_max),
            MAX_SEGMENTS,
        )?,
        driver,
        nr_requests: fields.or(
            "nr_requests",
            |scope, node| scope.some_up_to(node, 65_536),
            128,
        )?,
        elevator: fields.or(
            "elevator",
            |scope, node| scope.choice(node, "an elevator", &ELEVATORS),
            Elevator::Cfq,
        )?,
        members,
        chunk: fields.or("chunk", Scope::pages, 512 << 10)?,
        min_ratio,
        max_ratio,
        strictlimit: fields.or("strictlimit", Scope::flag, false)?,
        written_share: fields.or("written_share", percent, 0)?,
        write_errors: match entry.node.get("write_errors") {
            Some(node) => Some(write_errors(node, scope)?),
            None => None,
        },
        server,
    })
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
    let of_rate = fields.maybe(rate, Scope::data_rate)?;
    match of_rate {
        Some(rate) => Ok(Some(PAGE_SIZE.saturating_mul(1_000_000_000) / rate)),
        None => fields.maybe(time, Scope::duration),
    }
}

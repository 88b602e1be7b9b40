//! Block devices of a machine: `[device.NAME]`.

use crate::machine::{
    Device, DeviceKind, Driver, Elevator, Machine, PAGE_SIZE, VIRTIO_SEGMENTS, WriteErrors,
};

use super::error::{Problem, Result};
use super::fields::{Field, Fields, field, keys, lines};
use super::forms::{
    COUNT, FLAG, Form, PAGE_OFFSET, PAGES, SIZE, SOME_SIZE, WORK, Word, size_text, time_text,
    up_to, word,
};
use super::machine::{Description, named, put};
use super::scope::Scope;
use super::server;
use super::suggest;
use super::tree::{Entry, Node, shorten};
use super::write::{Writer, header, inline};

impl Word for DeviceKind {
    const WHAT: &'static str = "a kind of device";
    const WORDS: &'static [(&'static str, DeviceKind)] =
        &[("hdd", DeviceKind::Hdd), ("ssd", DeviceKind::Ssd)];
}

impl Word for Elevator {
    const WHAT: &'static str = "an elevator";
    const WORDS: &'static [(&'static str, Elevator)] = &[
        ("noop", Elevator::Noop),
        ("deadline", Elevator::Deadline),
        ("cfq", Elevator::Cfq),
    ];
}

impl Word for Driver {
    const WHAT: &'static str = "a driver";
    const WORDS: &'static [(&'static str, Driver)] =
        &[("virtio-blk", Driver::VirtioBlk), ("nvme", Driver::Nvme)];
}

/// A part in percent.
const PERCENT: Form<u64> = Form {
    read: percent,
    write: COUNT.write,
};
/// At least one.
const SOME: Form<u64> = Form {
    read: |scope, node| scope.some(node),
    write: COUNT.write,
};
/// The largest request, if there is one.
const LARGEST: Form<Option<u64>> = Form {
    read: |scope, node| (PAGES.read)(scope, node).map(Some),
    write: |bytes| (PAGES.write)(bytes.as_ref()?),
};
/// A driver, if one is known.
const DRIVER: Form<Option<Driver>> = Form {
    read: |scope, node| (word::<Driver>().read)(scope, node).map(Some),
    write: |driver| (word::<Driver>().write)(driver.as_ref()?),
};

/// Shows the field that says how fast reads are.
const TRANSFER: &str = "page = \"42.4us\", or rate = \"96.5MB/s\"";

/// What a device is. Its kind comes before anything else: what is not said follows from it.
static KIND: [Field<Device>; 1] = [Field {
    key: "kind",
    example: Some("kind = \"hdd\" or \"ssd\""),
    read: Some(|device, scope, node| {
        let kind = (word::<DeviceKind>().read)(scope, node)?;
        *device = Device::bare(&device.name, kind);
        Ok(())
    }),
    write: |device, _| (word::<DeviceKind>().write)(&device.kind),
}];
/// How large it is, and what it says of itself.
static SIZES: [Field<Device>; 2] = [
    field!("rotational", rotational, FLAG),
    field!("size", size, SOME_SIZE, needed "size = \"64G\""),
];
/// Times of a command, which have no defaults.
static TIMES: [Field<Device>; 4] = [
    field!("position_read", position_read_ns, WORK, needed "position_read = \"7.56ms\""),
    field!("position_write", position_write_ns, WORK, needed "position_write = \"3.78ms\""),
    field!("command_read", command_read_ns, WORK, needed "command_read = \"62us\""),
    field!("command_write", command_write_ns, WORK, needed "command_write = \"62us\""),
];
/// How long a page is on its way: [`transfers`]. It is written as a time, which is exact, unless `[fitted]` names the
/// rate.
static TRANSFERS: [Field<Device>; 4] = [
    Field::apart("page", Some(TRANSFER), |device, place| {
        (!place.is_fitted("rate")).then(|| time_text(device.page_ns))
    }),
    Field::apart("rate", Some(TRANSFER), |device, place| {
        place.is_fitted("rate").then(|| rate_text(device.page_ns))
    }),
    Field::apart("page_write", None, |device, place| {
        (!place.is_fitted("rate_write")).then(|| time_text(device.page_write_ns))
    }),
    Field::apart("rate_write", None, |device, place| {
        let fitted = place.is_fitted("rate_write");
        fitted.then(|| rate_text(device.page_write_ns))
    }),
];
/// What is left: the medium, the queue, dirty throttling, errors, and the server.
static OTHERS: [Field<Device>; 20] = [
    field!("skip_pages", skip_pages, COUNT),
    field!("read_ahead", read_ahead, PAGES),
    field!("erase_block", erase_block, PAGES),
    field!("open_blocks", open_blocks, up_to::<64>()),
    field!("queue_depth", queue_depth, up_to::<65_536>()),
    field!("parallelism", parallelism, up_to::<65_536>()),
    field!("max_request", max_request, LARGEST),
    // How many there may be depends on the driver: `segments`.
    Field::apart("max_segments", None, |device, _| {
        Some(device.max_segments.to_string())
    }),
    field!("driver", driver, DRIVER),
    field!("hardware_queues", hardware_queues, up_to::<65_536>()),
    field!("nr_requests", nr_requests, up_to::<65_536>()),
    field!("elevator", elevator, word::<Elevator>()),
    field!("members", members, up_to::<64>()),
    field!("chunk", chunk, PAGES),
    field!("min_ratio", min_ratio, PERCENT),
    field!("max_ratio", max_ratio, PERCENT),
    field!("strictlimit", strictlimit, FLAG),
    field!("written_share", written_share, PERCENT),
    Field {
        key: "write_errors",
        example: None,
        read: Some(|device, scope, node| {
            device.write_errors = Some(write_errors(node, scope)?);
            Ok(())
        }),
        write: |device, place| {
            let place = place.inside("write_errors");
            let errors = device.write_errors.as_ref()?;
            Some(inline(&WRITE_ERRORS, errors, &EVERY_WRITE, &place))
        },
    },
    Field::apart("server", None, |device, place| {
        let server = device.server.as_ref()?;
        Some(server::write(server, &place.inside("server")))
    }),
];

/// Which writes fail.
static WRITE_ERRORS: [Field<WriteErrors>; 5] = [
    field!("start", start, PAGE_OFFSET),
    field!("size", size, PAGES),
    field!("after", after, SIZE),
    field!("every", every, SOME),
    field!("count", count, SOME),
];

/// All of them, which fail if nothing is said.
const EVERY_WRITE: WriteErrors = WriteErrors {
    start: 0,
    size: u64::MAX,
    after: 0,
    every: 1,
    count: u64::MAX,
};

/// All fields of a device, in the order in which they are written.
fn fields() -> impl Iterator<Item = &'static Field<Device>> {
    let of_commands = SIZES.iter().chain(&TIMES).chain(&TRANSFERS);
    KIND.iter().chain(of_commands).chain(&OTHERS)
}

/// The keys of a device.
pub(super) fn device_keys() -> Vec<&'static str> {
    keys(fields())
}

/// Reads the devices of a machine. One with a `kind` is described in full: it replaces the one of its name, or is
/// added. One without changes the fields of that of its name.
pub(super) fn read_all(
    node: &Node,
    _: Description<'_>,
    machine: &mut Machine,
    scope: &Scope<'_>,
) -> Result<()> {
    for entry in named(node, "device")? {
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

/// Writes the devices of a machine.
pub(super) fn write_all(writer: &mut Writer<'_>) {
    for device in &writer.machine.devices {
        let name = format!("device.{}", device.name);
        let default = Device {
            page_write_ns: device.page_ns,
            ..Device::bare(&device.name, device.kind)
        };
        let mut said = device.clone();
        // Neither may be given where it means nothing, see `together`.
        if device.members == 1 {
            said.chunk = default.chunk;
        }
        if device.erase_block == 0 {
            said.open_blocks = default.open_blocks;
        }
        let lines = lines(fields(), &said, &default, &writer.place(&name));
        writer.section(&header("device", &device.name), &lines);
        writer.uncited.push(name);
    }
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
    let owner = format!("the device `{}`", entry.key);
    let fields = Fields::open(&entry.node, entry.key_span, &owner, &device_keys(), scope)?;
    let new = base.is_none();
    let mut device = match base {
        Some(base) => base.clone(),
        None => Device::bare(&entry.key, DeviceKind::Hdd),
    };
    // This is the order of the messages where several fields are missing.
    fields.fill(&KIND, &mut device, new)?;
    transfers(&fields, &mut device, new)?;
    for fields_of in [&TIMES[..], &SIZES, &OTHERS] {
        fields.fill(fields_of, &mut device, new)?;
    }
    segments(&fields, &mut device)?;
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
            return Err(fields.missing("page", TRANSFER));
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

/// How many pieces of memory a request has at most.
fn segments(fields: &Fields<'_, '_>, device: &mut Device) -> Result<()> {
    let most = match device.driver {
        Some(Driver::VirtioBlk) => VIRTIO_SEGMENTS,
        Some(Driver::Nvme) | None => 65_535,
    };
    let read = |scope: &Scope<'_>, node: &Node| scope.some_up_to(node, most);
    device.max_segments = fields.or("max_segments", read, device.max_segments)?;
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
    if device.driver.is_none() {
        fields.refuse(
            "hardware_queues",
            "but a disk behind SCSI has one",
            "add driver = \"virtio-blk\" or \"nvme\"",
        )?;
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
    let keys = keys(&WRITE_ERRORS);
    let fields = Fields::open(node, node.span, "`write_errors`", &keys, scope)?;
    let mut errors = EVERY_WRITE;
    fields.fill(&WRITE_ERRORS, &mut errors, true)?;
    Ok(errors)
}

/// A part in percent.
fn percent(scope: &Scope<'_>, node: &Node) -> Result<u64> {
    let value = scope.count(node)?;
    if value <= 100 {
        Ok(value)
    } else {
        Err(Problem::new(
            node.span,
            format!("expected a percentage from 0 to 100, found {value}"),
            "write a part of the dirty threshold in percent",
        ))
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
    Ok(rate.map(|rate| PAGE_IN_A_SECOND / rate))
}

/// The rate, in bytes a second, at which a page takes a nanosecond; and the nanoseconds that it takes at a byte a second.
const PAGE_IN_A_SECOND: u64 = PAGE_SIZE * 1_000_000_000;

/// A rate at which a page takes this time, if it takes it at any.
pub(super) fn rate_text(page_ns: u64) -> String {
    let rate = PAGE_IN_A_SECOND.checked_div(page_ns);
    let size = size_text(rate.unwrap_or(PAGE_IN_A_SECOND + 1));
    let size = size.trim_matches('"');
    let unit = if size.ends_with(char::is_numeric) {
        "B"
    } else {
        ""
    };
    format!("\"{size}{unit}/s\"")
}

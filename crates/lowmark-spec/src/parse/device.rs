//! Block devices of a machine: `[device.NAME]`.

use crate::machine::{Device, DeviceKind, Elevator, Machine, PAGE_SIZE};

use super::error::{Problem, Result};
use super::fields::Fields;
use super::machine::{named, put};
use super::scope::Scope;
use super::suggest;
use super::tree::{Entry, Node, shorten};

/// Reads the devices of a machine: they replace those of the same name, or are added.
pub(super) fn read_all(parts: &Node, machine: &mut Machine, scope: &Scope<'_>) -> Result<()> {
    for entry in named(parts, "device")? {
        let device = device(entry, scope)?;
        put(&mut machine.devices, device, |other| {
            other.name == entry.key
        });
    }
    Ok(())
}

fn device(entry: &Entry, scope: &Scope<'_>) -> Result<Device> {
    const KEYS: [&str; 18] = [
        "kind",
        "rotational",
        "size",
        "position_read",
        "position_write",
        "command_read",
        "command_write",
        "page",
        "rate",
        "skip_pages",
        "read_ahead",
        "queue_depth",
        "parallelism",
        "max_request",
        "nr_requests",
        "elevator",
        "members",
        "chunk",
    ];
    const KINDS: [(&str, DeviceKind); 2] = [("hdd", DeviceKind::Hdd), ("ssd", DeviceKind::Ssd)];
    const ELEVATORS: [(&str, Elevator); 3] = [
        ("noop", Elevator::Noop),
        ("deadline", Elevator::Deadline),
        ("cfq", Elevator::Cfq),
    ];
    let owner = format!("the device `{}`", entry.key);
    let fields = Fields::open(&entry.node, entry.key_span, &owner, &KEYS, scope)?;
    let kind = fields.need("kind", "kind = \"hdd\" or \"ssd\"", |scope, node| {
        scope.choice(node, "a kind of device", &KINDS)
    })?;
    fields.either("page", "rate")?;
    let page_ns = match fields.maybe("rate", Scope::data_rate)? {
        Some(rate) => PAGE_SIZE.saturating_mul(1_000_000_000) / rate,
        None => fields.need(
            "page",
            "page = \"42.4us\", or rate = \"96.5MB/s\"",
            Scope::duration,
        )?,
    };
    let members = fields.or("members", |scope, node| scope.some_up_to(node, 64), 1)?;
    if members == 1 {
        fields.refuse("chunk", "but the device has one member", "add members = 12")?;
    }
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
        skip_pages: fields.or("skip_pages", Scope::count, 0)?,
        read_ahead: fields.or("read_ahead", Scope::pages, 0)?,
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
        max_request: fields.or("max_request", Scope::pages, 512 << 10)?,
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

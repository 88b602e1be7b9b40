//! Swap areas of a machine: `[[swap]]`.

use crate::machine::{Device, Machine, PAGE_SIZE, SwapArea};

use super::device;
use super::error::{Problem, Result};
use super::fields::{Field, Fields, field, keys};
use super::forms::{FLAG, Form, PAGE_OFFSET};
use super::machine::Description;
use super::scope::Scope;
use super::tree::{Node, Value};
use super::write::Writer;

/// The fields of a swap area.
static FIELDS: [Field<SwapArea>; 5] = [
    Field::apart("device", None, |area, place| place.device(area.device)),
    field!("start", start, PAGE_OFFSET),
    field!("size", size, PAGE_OFFSET, needed "size = \"1G\""),
    field!("priority", priority, PRIORITY),
    field!("file", file, FLAG),
];

/// What an area is of which nothing is said; it is on no device.
const BARE: SwapArea = SwapArea {
    device: usize::MAX,
    start: 0,
    size: 0,
    priority: -1,
    file: false,
};

/// A priority, as `swapon -p` takes it. The kernel's own are below zero: a file does not give them.
const PRIORITY: Form<i32> = Form {
    read: priority,
    write: |priority| (*priority >= 0).then(|| priority.to_string()),
};

/// Reads `[[swap]]`, which replaces all areas of the machine.
pub(super) fn read(
    node: &Node,
    _: Description<'_>,
    machine: &mut Machine,
    scope: &Scope<'_>,
) -> Result<()> {
    machine.swap = areas(node, &machine.devices, scope)?;
    Ok(())
}

/// Writes `[[swap]]`.
pub(super) fn write(writer: &mut Writer<'_>) {
    writer.list("swap", &FIELDS, &writer.machine.swap, &BARE);
}

fn areas(node: &Node, devices: &[Device], scope: &Scope<'_>) -> Result<Vec<SwapArea>> {
    const AREAS_MAX: usize = 32;
    let one = std::slice::from_ref(node);
    let nodes = if let Value::Array(nodes) = &node.value {
        nodes
    } else {
        one
    };
    if nodes.len() > AREAS_MAX {
        let message = format!(
            "expected at most {AREAS_MAX} swap areas, found {}",
            nodes.len()
        );
        return Err(Problem::new(
            node.span,
            message,
            "the kernel has room for no more",
        ));
    }
    let mut areas: Vec<SwapArea> = Vec::with_capacity(nodes.len());
    let mut automatic = 0;
    for node in nodes {
        let area = area(node, devices, scope, &mut automatic)?;
        let end = area.start + area.size;
        if areas.iter().any(|other| {
            other.device == area.device
                && other.start < end
                && area.start < other.start + other.size
        }) {
            return Err(Problem::new(
                node.span,
                "expected swap areas side by side, found one that overlaps an earlier one",
                "give it another `start` or another `device`",
            ));
        }
        areas.push(area);
    }
    Ok(areas)
}

fn area(
    node: &Node,
    devices: &[Device],
    scope: &Scope<'_>,
    automatic: &mut i32,
) -> Result<SwapArea> {
    const SIZE_MIN: u64 = 10 * PAGE_SIZE;
    let fields = Fields::open(node, node.span, "a swap area", &keys(&FIELDS), scope)?;
    let device = fields.need("device", "device = \"sda\"", |scope, node| {
        device::index(scope, node, devices)
    })?;
    if devices
        .get(device)
        .is_some_and(|device| device.server.is_some())
    {
        let span = fields
            .node("device")
            .map_or(node.span, |device| device.span);
        return Err(Problem::new(
            span,
            "expected a device of the machine itself, found one in a server",
            "swap to a disk of its own: the model does not swap over a network",
        ));
    }
    if fields.node("priority").is_none() {
        *automatic -= 1;
    }
    let mut area = SwapArea {
        device,
        priority: *automatic,
        ..BARE
    };
    fields.fill(&FIELDS, &mut area, true)?;
    let (start, size) = (area.start, area.size);
    let span = fields.node("size").map_or(node.span, |size| size.span);
    if size < SIZE_MIN {
        return Err(Problem::new(
            span,
            format!("expected a swap area of at least 10 pages, found {size} bytes"),
            "swapon(8) refuses anything smaller",
        ));
    }
    let device_size = devices.get(device).map_or(0, |device| device.size);
    if start.checked_add(size).is_none_or(|end| end > device_size) {
        return Err(Problem::new(
            span,
            format!(
                "expected a swap area within the device's {device_size} bytes, found {start} + {size}"
            ),
            "lower `start` or `size`, or use a larger device",
        ));
    }
    Ok(area)
}

fn priority(scope: &Scope<'_>, node: &Node) -> Result<i32> {
    let value = scope.count(node)?;
    i32::try_from(value)
        .ok()
        .filter(|&priority| priority <= 32_767)
        .ok_or_else(|| {
            let message = format!("expected a priority from 0 to 32767, found {value}");
            Problem::new(
                node.span,
                message,
                "leave it out for the kernel's own -1, -2, …",
            )
        })
}

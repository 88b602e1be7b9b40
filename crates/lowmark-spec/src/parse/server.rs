//! The NFS server that a device is in: `server` of `[device.NAME]`.

use crate::machine::Server;

use super::device::transfer;
use super::error::Result;
use super::fields::Fields;
use super::scope::Scope;
use super::tree::Node;

/// Fields of a device that are about its request queue or its members; the disk of a server has neither.
const OF_LOCAL_DEVICES: [&str; 7] = [
    "driver",
    "elevator",
    "nr_requests",
    "queue_depth",
    "parallelism",
    "members",
    "write_errors",
];

/// Refuses what the disk of a server does not have; `device` are the fields of the device.
pub(super) fn refuse_local(device: &Fields<'_, '_>) -> Result<()> {
    for field in OF_LOCAL_DEVICES {
        let help = format!("remove `{field}`, or `server` for a device of the machine itself");
        device.refuse(
            field,
            "but the disk of a server works off one command at a time, in the order of the server",
            &help,
        )?;
    }
    Ok(())
}

/// Reads `server`.
pub(super) fn read(node: &Node, scope: &Scope<'_>) -> Result<Server> {
    const KEYS: [&str; 7] = [
        "round_trip",
        "page",
        "rate",
        "slots",
        "wsize",
        "threads",
        "ram",
    ];
    let fields = Fields::open(node, node.span, "`server`", &KEYS, scope)?;
    let page_ns = match transfer(&fields, "page", "rate")? {
        Some(time) => time,
        None => return Err(fields.missing("rate", "rate = \"117MB/s\", or page = \"35us\"")),
    };
    Ok(Server {
        round_trip_ns: fields.need("round_trip", "round_trip = \"300us\"", Scope::work)?,
        page_ns,
        slots: fields.or("slots", |scope, node| scope.some_up_to(node, 65_536), 16)?,
        wsize: fields.or("wsize", Scope::pages, 1 << 20)?,
        threads: fields.or("threads", |scope, node| scope.some_up_to(node, 4096), 8)?,
        ram: fields.need("ram", "ram = \"4G\"", Scope::some_size)?,
    })
}

//! The NFS server that a device is in: `server` of `[device.NAME]`.

use crate::machine::Server;

use super::device::{rate_text, transfer};
use super::error::Result;
use super::fields::{Field, Fields, field, keys};
use super::forms::{PAGES, SOME_SIZE, WORK, time_text, up_to};
use super::scope::Scope;
use super::tree::Node;
use super::write::{Place, inline};

/// Fields of a device that are about its request queue or its members; the disk of a server has neither.
const OF_LOCAL_DEVICES: [&str; 8] = [
    "driver",
    "hardware_queues",
    "elevator",
    "nr_requests",
    "queue_depth",
    "parallelism",
    "members",
    "write_errors",
];

/// Shows the field that says how fast the network is.
const TRANSFER: &str = "rate = \"117MB/s\", or page = \"35us\"";

/// The fields of `server`.
static FIELDS: [Field<Server>; 7] = [
    field!("round_trip", round_trip_ns, WORK, needed "round_trip = \"300us\""),
    Field::apart("page", Some(TRANSFER), |server, place| {
        (!place.is_fitted("rate")).then(|| time_text(server.page_ns))
    }),
    Field::apart("rate", Some(TRANSFER), |server, place| {
        place.is_fitted("rate").then(|| rate_text(server.page_ns))
    }),
    field!("slots", slots, up_to::<65_536>()),
    field!("wsize", wsize, PAGES),
    field!("threads", threads, up_to::<4096>()),
    field!("ram", ram, SOME_SIZE, needed "ram = \"4G\""),
];

/// What a server is of which nothing is said.
const BARE: Server = Server {
    round_trip_ns: 0,
    page_ns: 0,
    slots: 16,
    wsize: 1 << 20,
    threads: 8,
    ram: 0,
};

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
    let fields = Fields::open(node, node.span, "`server`", &keys(&FIELDS), scope)?;
    let Some(page_ns) = transfer(&fields, "page", "rate")? else {
        return Err(fields.missing("rate", TRANSFER));
    };
    let mut server = Server { page_ns, ..BARE };
    fields.fill(&FIELDS, &mut server, true)?;
    Ok(server)
}

/// Writes `server`, the field at `place`.
pub(super) fn write(server: &Server, place: &Place<'_>) -> String {
    inline(&FIELDS, server, &BARE, place)
}

//! The zones of a machine, where a machine file gives them: `[[zone]]`.

use crate::machine::{Machine, PAGE_SIZE, PAGEBLOCK_ORDERS, Pageblocks, Zone, ZoneKind};

use super::error::{Problem, Result};
use super::fields::{Field, Fields, field, keys};
use super::forms::{COUNT, Form, Word, word};
use super::machine::Description;
use super::scope::Scope;
use super::tree::{Node, Value};
use super::write::Writer;

impl Word for ZoneKind {
    const WHAT: &'static str = "a zone";
    const WORDS: &'static [(&'static str, ZoneKind)] = &[
        ("DMA", ZoneKind::Dma),
        ("DMA32", ZoneKind::Dma32),
        ("Normal", ZoneKind::Normal),
        ("HighMem", ZoneKind::HighMem),
    ];
}

/// The fields of a zone.
static FIELDS: [Field<Zone>; 8] = [
    field!("node", node, NODE),
    field!("kind", kind, word::<ZoneKind>(), needed "kind = \"DMA32\""),
    field!("present", present, FRAMES, needed "present = \"130944p\""),
    field!("managed", managed, FRAMES, needed "managed = \"120000p\""),
    field!("initmem", initmem, FRAMES),
    field!("movable", movable, PAGEBLOCKS),
    field!("reclaimable", reclaimable, PAGEBLOCKS),
    field!("kept", kept, FRAMES),
];

/// What a zone is of which nothing is said.
const BARE: Zone = Zone::new(0, ZoneKind::Normal, 0, 0);

/// Number of a node.
const NODE: Form<usize> = Form {
    read: |scope, node| Ok(usize::try_from(scope.count(node)?).unwrap_or(usize::MAX)),
    write: |number| Some(number.to_string()),
};

/// A size that is counted in pages, as in `/proc/zoneinfo`.
const FRAMES: Form<u64> = Form {
    read: |scope, node| Ok(scope.page_offset(node)? / PAGE_SIZE),
    write: |pages| Some(format!("\"{pages}p\"")),
};

/// The fields of the pageblocks of a type.
static PAGEBLOCK_FIELDS: [Field<Pageblocks>; 2] = [
    field!("pageblocks", count, COUNT),
    field!("free", free, FREE),
];

/// Pageblocks of a type, a table.
const PAGEBLOCKS: Form<Pageblocks> = Form {
    read: |scope, node| {
        let keys = keys(&PAGEBLOCK_FIELDS);
        let fields = Fields::open(node, node.span, "the pageblocks of a type", &keys, scope)?;
        let mut pageblocks = Pageblocks::default();
        fields.fill(&PAGEBLOCK_FIELDS, &mut pageblocks, true)?;
        Ok(pageblocks)
    },
    write: |pageblocks| {
        (*pageblocks != Pageblocks::default()).then(|| {
            let free = free_blocks(&pageblocks.free);
            format!("{{ pageblocks = {}, free = {free} }}", pageblocks.count)
        })
    },
};

/// Numbers of free blocks, order 0 first; those that are left out are 0.
const FREE: Form<[u64; PAGEBLOCK_ORDERS]> = Form {
    read: read_free_blocks,
    write: |counts| Some(free_blocks(counts)),
};

/// Numbers of free blocks as a machine file has them.
fn free_blocks(counts: &[u64]) -> String {
    let last = counts.iter().rposition(|&count| count > 0);
    let used: Vec<String> = counts
        .iter()
        .take(last.map_or(0, |last| last + 1))
        .map(u64::to_string)
        .collect();
    format!("[{}]", used.join(", "))
}

/// Reads `[[zone]]`, which replaces all zones of the machine.
pub(super) fn read(
    node: &Node,
    _: Description<'_>,
    machine: &mut Machine,
    scope: &Scope<'_>,
) -> Result<()> {
    let rams: Vec<u64> = machine.nodes.iter().map(|node| node.ram).collect();
    machine.zones = zones(node, &rams, scope)?;
    Ok(())
}

/// Writes `[[zone]]`.
pub(super) fn write(writer: &mut Writer<'_>) {
    writer.list("zone", &FIELDS, &writer.machine.zones, &BARE);
}

/// Reads zones; `rams` is the RAM of each node, bytes.
fn zones(node: &Node, rams: &[u64], scope: &Scope<'_>) -> Result<Vec<Zone>> {
    let one = std::slice::from_ref(node);
    let nodes = match &node.value {
        Value::Array(nodes) => nodes.as_slice(),
        _ => one,
    };
    let mut zones: Vec<Zone> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let zone = zone(node, rams.len(), scope)?;
        if zones
            .last()
            .is_some_and(|last| (last.node, last.kind) >= (zone.node, zone.kind))
        {
            return Err(Problem::new(
                node.span,
                "expected zones node by node and lowest first, each once",
                "write them in the order of /proc/zoneinfo",
            ));
        }
        zones.push(zone);
    }
    for (at, ram) in rams.iter().enumerate() {
        let of_node = zones.iter().filter(|zone| zone.node == at);
        let pages: u64 = of_node.map(|zone| zone.present).sum();
        if pages > ram / PAGE_SIZE || pages == 0 {
            return Err(Problem::new(
                node.span,
                format!(
                    "expected zones within the {} pages of node {at}, found {pages} pages",
                    ram / PAGE_SIZE
                ),
                "leave the zones away, or give those of a machine with this RAM",
            ));
        }
    }
    Ok(zones)
}

fn zone(node: &Node, nodes: usize, scope: &Scope<'_>) -> Result<Zone> {
    let fields = Fields::open(node, node.span, "a zone", &keys(&FIELDS), scope)?;
    let mut zone = BARE;
    fields.fill(&FIELDS, &mut zone, true)?;
    if zone.node >= nodes {
        return Err(Problem::new(
            node.span,
            format!(
                "expected a node from 0 to {}, found {}",
                nodes - 1,
                zone.node
            ),
            "each entry of `nodes` is a node",
        ));
    }
    if zone.managed > zone.present {
        return Err(Problem::new(
            node.span,
            format!(
                "expected at most {} managed pages, those present, found {}",
                zone.present, zone.managed
            ),
            "copy both from /proc/zoneinfo",
        ));
    }
    if zone.initmem > zone.managed {
        return Err(Problem::new(
            node.span,
            format!(
                "expected at most {} pages of `initmem`, those managed, found {}",
                zone.managed, zone.initmem
            ),
            "it is what the kernel says it is freeing when it has booted",
        ));
    }
    if zone.kept > zone.managed {
        return Err(Problem::new(
            node.span,
            format!(
                "expected at most {} pages that CPUs keep (`kept`), those managed, found {}",
                zone.managed, zone.kept
            ),
            "it is the sum of `count` of the zone's pagesets in /proc/zoneinfo",
        ));
    }
    for (key, pageblocks) in [("movable", zone.movable), ("reclaimable", zone.reclaimable)] {
        check_pageblocks(node, key, &pageblocks, zone.managed)?;
    }
    Ok(zone)
}

/// Refuses pageblocks of a type for which a zone of `managed` pages has no room.
fn check_pageblocks(node: &Node, key: &str, pageblocks: &Pageblocks, managed: u64) -> Result<()> {
    let most = managed >> (PAGEBLOCK_ORDERS - 1);
    if pageblocks.count > most {
        return Err(Problem::new(
            node.span,
            format!(
                "expected at most {most} pageblocks, which is what {managed} managed pages are, found {} in `{key}`",
                pageblocks.count
            ),
            "it is the number of blocks of this type of /proc/pagetypeinfo",
        ));
    }
    // Before each block there is as much that is in use at least in part.
    let room = |order: usize| match order + 1 {
        PAGEBLOCK_ORDERS => managed >> order,
        above => managed >> above,
    };
    let blocks = pageblocks.free.iter().enumerate();
    if let Some((order, count)) = blocks
        .into_iter()
        .find(|&(order, &count)| count > room(order))
    {
        let most = room(order);
        return Err(Problem::new(
            node.span,
            format!(
                "expected at most {most} free blocks of order {order} in `{key}`, with as many pages between them, \
                 found {count}"
            ),
            "it is the line of free pages of this type of /proc/pagetypeinfo, up to order 9",
        ));
    }
    Ok(())
}

fn read_free_blocks(scope: &Scope<'_>, node: &Node) -> Result<[u64; PAGEBLOCK_ORDERS]> {
    let counts = node.elements("numbers of blocks by order")?;
    let mut free = [0; PAGEBLOCK_ORDERS];
    if counts.len() > free.len() {
        return Err(Problem::new(
            node.span,
            format!(
                "expected at most {PAGEBLOCK_ORDERS} numbers, for the orders 0 to {}, found {}",
                PAGEBLOCK_ORDERS - 1,
                counts.len()
            ),
            "larger blocks follow from what is free",
        ));
    }
    for (count, node) in free.iter_mut().zip(counts) {
        *count = scope.count(node)?;
    }
    Ok(free)
}

//! The zones of a machine, where a machine file gives them: `[[zone]]`.

use crate::machine::{FRAGMENT_ORDERS, Fragments, Machine, PAGE_SIZE, Zone, ZoneKind};

use super::error::{Problem, Result};
use super::fields::{Field, Fields, field, keys};
use super::forms::{Form, Word, word};
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
static FIELDS: [Field<Zone>; 7] = [
    field!("node", node, NODE),
    field!("kind", kind, word::<ZoneKind>(), needed "kind = \"DMA32\""),
    field!("present", present, FRAMES, needed "present = \"130944p\""),
    field!("managed", managed, FRAMES, needed "managed = \"120000p\""),
    field!("initmem", initmem, FRAMES),
    field!("fragments", fragments, FRAGMENTS),
    field!("kept", kept, FRAMES),
];

/// What a zone is of which nothing is said.
const BARE: Zone = Zone {
    node: 0,
    kind: ZoneKind::Normal,
    present: 0,
    managed: 0,
    initmem: 0,
    fragments: [0; FRAGMENT_ORDERS],
    kept: 0,
};

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

/// Numbers of free blocks, order 0 first; those that are left out are 0.
const FRAGMENTS: Form<Fragments> = Form {
    read: fragments,
    write: |counts| {
        let used = counts
            .iter()
            .rposition(|&count| count > 0)
            .map_or(0, |last| last + 1);
        let used: Vec<String> = counts.iter().take(used).map(u64::to_string).collect();
        Some(format!("[{}]", used.join(", ")))
    },
};

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
    let blocks = zone.fragments.iter().enumerate();
    // Before each of them there is as much that is in use at least in part.
    let most = |order: usize| zone.managed >> (order + 1);
    if let Some((order, count)) = blocks
        .into_iter()
        .find(|&(order, &count)| count > most(order))
    {
        let most = most(order);
        return Err(Problem::new(
            node.span,
            format!(
                "expected at most {most} `fragments` of order {order}, with as many pages between them, found {count}"
            ),
            "it is the line of free movable pages of /proc/pagetypeinfo, up to order 8",
        ));
    }
    Ok(zone)
}

fn fragments(scope: &Scope<'_>, node: &Node) -> Result<Fragments> {
    let counts = node.elements("numbers of blocks by order")?;
    let mut fragments = Fragments::default();
    if counts.len() > fragments.len() {
        return Err(Problem::new(
            node.span,
            format!(
                "expected at most {FRAGMENT_ORDERS} numbers, for the orders 0 to 8, found {}",
                counts.len()
            ),
            "larger blocks follow from what is free",
        ));
    }
    for (fragment, node) in fragments.iter_mut().zip(counts) {
        *fragment = scope.count(node)?;
    }
    Ok(fragments)
}

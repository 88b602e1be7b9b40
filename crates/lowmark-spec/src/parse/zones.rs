//! The zones of a machine, where a machine file gives them: `[[zone]]`.

use crate::machine::{FRAGMENT_ORDERS, Fragments, PAGE_SIZE, Zone, ZoneKind};

use super::error::{Problem, Result};
use super::fields::Fields;
use super::scope::Scope;
use super::tree::{Node, Value};

const KINDS: [(&str, ZoneKind); 4] = [
    ("DMA", ZoneKind::Dma),
    ("DMA32", ZoneKind::Dma32),
    ("Normal", ZoneKind::Normal),
    ("HighMem", ZoneKind::HighMem),
];

/// Reads zones; `rams` is the RAM of each node, bytes.
pub(super) fn read(node: &Node, rams: &[u64], scope: &Scope<'_>) -> Result<Vec<Zone>> {
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
    const KEYS: [&str; 6] = ["node", "kind", "present", "managed", "initmem", "fragments"];
    let fields = Fields::open(node, node.span, "a zone", &KEYS, scope)?;
    let pages = |scope: &Scope<'_>, node: &Node| Ok(scope.page_offset(node)? / PAGE_SIZE);
    let zone = Zone {
        node: usize::try_from(fields.or("node", Scope::count, 0)?).unwrap_or(usize::MAX),
        kind: fields.need("kind", "kind = \"DMA32\"", |scope, node| {
            scope.choice(node, "a zone", &KINDS)
        })?,
        present: fields.need("present", "present = \"130944p\"", pages)?,
        managed: fields.need("managed", "managed = \"120000p\"", pages)?,
        initmem: fields.or("initmem", pages, 0)?,
        fragments: fields.or("fragments", fragments, Fragments::default())?,
    };
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
    let blocks = zone.fragments.iter().enumerate();
    let most = zone
        .managed
        .checked_shr(FRAGMENT_ORDERS as u32)
        .unwrap_or(0);
    if let Some((order, count)) = blocks.into_iter().find(|&(_, &count)| count > most) {
        return Err(Problem::new(
            node.span,
            format!(
                "expected at most {most} `fragments` of each order, one for each 2 MiB, found {count} of order {order}"
            ),
            "it is the line of free movable pages of /proc/pagetypeinfo, up to order 8",
        ));
    }
    Ok(zone)
}

/// Numbers of blocks, order 0 first; those that are left out are 0.
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

//! CPU costs of a machine: `[costs]`, and `[kernel_costs."v6.1"]` for those under one kernel.

use crate::kernel::version_name;
use crate::machine::{Costs, Machine};

use super::error::{Problem, Result};
use super::fields::{Field, Fields, field, keys, lines};
use super::forms::WORK;
use super::machine::Description;
use super::scope::Scope;
use super::tree::{Entry, Node};
use super::write::{Writer, header};

const KERNEL_COSTS: &str = "kernel_costs";

/// The costs.
static FIELDS: [Field<Costs>; 40] = [
    field!("touch", touch_ns, WORK),
    field!("memset_page", memset_page_ns, WORK),
    field!("minor_fault", minor_fault_ns, WORK),
    field!("major_fault", major_fault_ns, WORK),
    field!("zero_page", zero_page_ns, WORK),
    field!("zero_huge_page", zero_huge_page_ns, WORK),
    field!("swap_page", swap_page_ns, WORK),
    field!("swap_huge_page", swap_huge_page_ns, WORK),
    field!("swap_in", swap_in_ns, WORK),
    field!("swap_map", swap_map_ns, WORK),
    field!("migrate_page", migrate_page_ns, WORK),
    field!("scan_page", scan_page_ns, WORK),
    field!("shrink_slab", shrink_slab_ns, WORK),
    field!("scan_object", scan_object_ns, WORK),
    field!("free_object", free_object_ns, WORK),
    field!("free_extent", free_extent_ns, WORK),
    field!("unmap_page", unmap_page_ns, WORK),
    field!("free_page", free_page_ns, WORK),
    field!("zap_page", zap_page_ns, WORK),
    field!("zap_huge_page", zap_huge_page_ns, WORK),
    field!("zap_swap", zap_swap_ns, WORK),
    field!("context_switch", context_switch_ns, WORK),
    field!("switch_mm", switch_mm_ns, WORK),
    field!("copy_page", copy_page_ns, WORK),
    field!("file_page", file_page_ns, WORK),
    field!("folio_page", folio_page_ns, WORK),
    field!("dirty_page", dirty_page_ns, WORK),
    field!("request", request_ns, WORK),
    field!("dispatch", dispatch_ns, WORK),
    field!("kblockd", kblockd_ns, WORK),
    field!("balance_dirty", balance_dirty_ns, WORK),
    field!("list_lock", list_lock_ns, WORK),
    field!("move_inode", move_inode_ns, WORK),
    field!("lookup", lookup_ns, WORK),
    field!("read_inode", read_inode_ns, WORK),
    field!("open", open_ns, WORK),
    field!("create", create_ns, WORK),
    field!("unlink", unlink_ns, WORK),
    field!("write_inode", write_inode_ns, WORK),
    field!("syscall", syscall_ns, WORK),
];

/// Reads `[costs]`.
pub(super) fn read(
    node: &Node,
    _: Description<'_>,
    machine: &mut Machine,
    scope: &Scope<'_>,
) -> Result<()> {
    change(node, "[costs]", &mut machine.costs, scope)?;
    // What is said of all kernels holds for those that are named in the base, too.
    for others in machine.kernel_costs.values_mut() {
        change(node, "[costs]", others, scope)?;
    }
    Ok(())
}

/// Reads `[kernel_costs."v6.1"]`: what costs something else than `[costs]` says under a kernel.
pub(super) fn read_of_kernels(
    node: &Node,
    _: Description<'_>,
    machine: &mut Machine,
    scope: &Scope<'_>,
) -> Result<()> {
    for Entry {
        key,
        key_span,
        node,
    } in node.entries("one table for each kernel")?
    {
        let Some(version) = version_name(key) else {
            return Err(Problem::new(
                *key_span,
                format!("expected the version of a kernel, found \"{key}\""),
                "write it as in `[kernel]`, such as [kernel_costs.\"v6.1\"]",
            ));
        };
        let known = machine.kernel_costs.get(&version);
        let mut costs = known.unwrap_or(&machine.costs).clone();
        change(
            node,
            &format!("[{KERNEL_COSTS}.\"{key}\"]"),
            &mut costs,
            scope,
        )?;
        machine.kernel_costs.insert(version, costs);
    }
    Ok(())
}

/// Where a machine does not give `swap_huge_page`, swapping out a huge page as a whole takes as long as swapping out this many single
/// pages: 105 in guests of 6.18.
const HUGE_FOR_ONE_SWAPPED: u64 = 100;

fn change(node: &Node, section: &str, costs: &mut Costs, scope: &Scope<'_>) -> Result<()> {
    let fields = Fields::open(node, node.span, section, &keys(&FIELDS), scope)?;
    fields.fill(&FIELDS, costs, false)?;
    // A file that gives one of two such costs means both.
    let alone =
        |given: &str, other: &str| fields.node(given).is_some() && fields.node(other).is_none();
    if alone("swap_page", "swap_in") {
        costs.swap_in_ns = costs.swap_page_ns;
    }
    if alone("swap_page", "swap_huge_page") {
        costs.swap_huge_page_ns = HUGE_FOR_ONE_SWAPPED * costs.swap_page_ns;
    }
    Ok(())
}

/// Writes `[costs]`.
pub(super) fn write(writer: &mut Writer<'_>) {
    let lines = changes(writer, "costs", &writer.machine.costs, &Costs::default());
    if !lines.is_empty() || writer.place("").is_fitted("costs") {
        writer.section("[costs]", &lines);
        writer.uncited.push("costs".into());
    }
}

/// Writes `[kernel_costs."v6.1"]`.
pub(super) fn write_of_kernels(writer: &mut Writer<'_>) {
    let machine = writer.machine;
    for (version, costs) in &machine.kernel_costs {
        let path = format!("{KERNEL_COSTS}.{version}");
        let lines = changes(writer, &path, costs, &machine.costs);
        writer.section(&header(KERNEL_COSTS, version), &lines);
    }
    if !machine.kernel_costs.is_empty() {
        writer.uncited.push(KERNEL_COSTS.into());
    }
}

/// What is to be said to change the costs `from` to `to`.
fn changes(writer: &Writer<'_>, path: &str, to: &Costs, from: &Costs) -> Vec<String> {
    let mut from = from.clone();
    if from.swap_page_ns != to.swap_page_ns {
        // `swap_page` is written, and says these as well.
        from.swap_in_ns = to.swap_page_ns;
        from.swap_huge_page_ns = HUGE_FOR_ONE_SWAPPED * to.swap_page_ns;
    }
    lines(&FIELDS, to, &from, &writer.place(path))
}

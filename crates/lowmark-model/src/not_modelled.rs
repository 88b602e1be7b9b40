//! What a scenario asks for and the model leaves out, where the results mean something all the same.
//!
//! What would make the results mean something else is refused instead (`refuse.rs`, `task/support.rs`).

use crate::kernel::Kernel;
use lowmark_record::Remark;
use lowmark_spec::Scenario;
use lowmark_spec::workload::{Advice, Op, Stmt};

/// Bits of `/proc/sys/vm/drop_caches`.
const DROP_SLAB: u32 = 2;

/// Everything in a scenario that the model leaves out: what belongs to no statement first, then by line, each once.
pub(crate) fn remarks(scenario: &Scenario, kernel: &Kernel) -> Vec<Remark> {
    let names = scenario.kernel.sysctl.keys();
    let without_effect = names.filter_map(|name| kernel.without_effect(name));
    let mut found: Vec<Remark> = without_effect
        .map(|text| Remark { line: None, text })
        .collect();
    if scenario.machine.thp && lacks_huge_pages(kernel) {
        let text =
            "huge pages are left out: `thp = true` of the machine only raises the watermarks";
        found.push(Remark {
            line: None,
            text: text.into(),
        });
    }
    let tasks = scenario.workload.tasks.iter();
    for stmt in tasks.flat_map(|task| task.instances.iter().flatten()) {
        collect(stmt, kernel, &mut found);
    }
    found.sort_by_key(|remark| remark.line);
    found
}

fn collect(stmt: &Stmt, kernel: &Kernel, found: &mut Vec<Remark>) {
    let shrinkers = (!kernel.coverage.shrinkers).then(|| without_shrinkers(&stmt.op));
    let huge_pages = lacks_huge_pages(kernel).then(|| of_huge_pages(&stmt.op));
    if let Some(text) = shrinkers.flatten().or(huge_pages.flatten()) {
        let remark = Remark {
            line: Some(stmt.line),
            text,
        };
        if !found.contains(&remark) {
            found.push(remark);
        }
    }
    for inner in stmt.op.bodies().into_iter().flatten() {
        collect(inner, kernel, found);
    }
}

/// The version has huge pages, and the run has none.
fn lacks_huge_pages(kernel: &Kernel) -> bool {
    let left_out = kernel.coverage.left_out_of(kernel.version);
    left_out.contains(&"huge_pages")
}

/// What of a statement has no effect without shrinkers; none if all of it has.
fn without_shrinkers(op: &Op) -> Option<String> {
    match op {
        Op::DropCaches { what } if what & DROP_SLAB != 0 => Some(format!(
            "shrinkers are left out: `drop_caches = {what}` shrinks none"
        )),
        Op::StatWalk { .. } => Some(
            "shrinkers are left out: `stat_walk` takes its time, but leaves no inodes and dentries behind"
                .into(),
        ),
        _ => None,
    }
}

/// What of a statement asks for huge pages; none if nothing does. Who asks for small ones gets them.
fn of_huge_pages(op: &Op) -> Option<String> {
    let advice = match op {
        Op::Map { advice, .. } => *advice,
        Op::Advise { advice, .. } => Some(*advice),
        _ => None,
    };
    (advice == Some(Advice::Hugepage))
        .then(|| "huge pages are left out: advice `hugepage` has no effect".into())
}

//! Which statements the model can carry out.

use super::since::kinds_of;
use crate::kernel::Kernel;
use lowmark_spec::workload::{Condition, MapKind, Op, Stmt, Workload};

/// A statement that the model cannot carry out yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// Task that holds it.
    pub task: String,
    /// Line of the workload file.
    pub line: u32,
    /// The statement, and what about it, if only part of it is missing.
    pub statement: String,
}

/// Everything in a workload that the model cannot carry out, each kind once per line.
pub fn unsupported(workload: &Workload) -> Vec<Unsupported> {
    let mut found = Vec::new();
    for task in &workload.tasks {
        for body in &task.instances {
            let kinds = kinds_of(body, task.maps.len());
            for stmt in body {
                collect(&task.name, stmt, &kinds, &mut found);
            }
        }
    }
    found
}

fn collect(task: &str, stmt: &Stmt, kinds: &[Option<MapKind>], found: &mut Vec<Unsupported>) {
    if let Some(statement) = missing(&stmt.op, kinds) {
        let entry = Unsupported {
            task: task.into(),
            line: stmt.line,
            statement,
        };
        if !found.contains(&entry) {
            found.push(entry);
        }
    }
    for inner in stmt.op.bodies().into_iter().flatten() {
        collect(task, inner, kinds, found);
    }
}

/// What of the statement is missing; `None` if nothing is.
fn missing(op: &Op, kinds: &[Option<MapKind>]) -> Option<String> {
    let part = |what: &str| Some(format!("{} {what}", op.name()));
    match op {
        Op::Punch { map, .. } => match kinds.get(*map).copied().flatten() {
            Some(MapKind::FileShared(_) | MapKind::FilePrivate(_)) | None => part("of a file"),
            Some(_) => None,
        },
        Op::Until {
            condition: Condition::KswapdIdle | Condition::Vmstat { .. },
            ..
        }
        | Op::Map { .. }
        | Op::Unmap { .. }
        | Op::Mlock { .. }
        | Op::Advise { .. }
        | Op::Probe { .. }
        | Op::Touch { .. }
        | Op::Memset { .. }
        | Op::Node { .. }
        | Op::Sleep(_)
        | Op::Think(_)
        | Op::Burn(_)
        | Op::Barrier(_)
        | Op::StopSelf
        | Op::Resume { .. }
        | Op::Spawn { .. }
        | Op::Wait { .. }
        | Op::Kill { .. }
        | Op::Repeat { .. }
        | Op::Parallel { .. }
        | Op::Phase(_)
        | Op::Sample { .. }
        | Op::Fsync { .. }
        | Op::SyncRange { .. }
        | Op::Sync
        | Op::Create { .. }
        | Op::Delete { .. }
        | Op::Truncate { .. }
        | Op::StatWalk { .. }
        | Op::DropCaches { .. }
        | Op::Reclaim { .. }
        | Op::Copy { .. }
        | Op::Alloc(_)
        | Op::Free { .. }
        | Op::Build { .. } => None,
        Op::Sysctl { name, .. } => {
            if Kernel::changes_while_running(name) {
                None
            } else {
                part(&format!(
                    "of {name}, which the model reads when the kernel boots: set it under [kernel]"
                ))
            }
        }
        Op::Read(io) | Op::Write(io) | Op::Append(io) => {
            if io.direct {
                part("with direct")
            } else {
                None
            }
        }
        _ => Some(op.name().into()),
    }
}

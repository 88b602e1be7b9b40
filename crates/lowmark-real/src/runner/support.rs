//! Which statements the runner can carry out.

use super::hugetlb::HUGE_ORDER;
use lowmark_spec::workload::{AllocFlags, FileIo, Op, Sharing, SizeDist, Stmt, Task, Workload};

/// Something in a workload that the runner cannot carry out yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// Task that holds it; empty if it belongs to none.
    pub task: String,
    /// Line of the workload file; 0 if it is not a statement.
    pub line: u32,
    /// The statement, and what about it, if only part of it is missing.
    pub statement: String,
}

impl std::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Unsupported {
            task,
            line,
            statement,
        } = self;
        if task.is_empty() {
            write!(f, "{statement}")
        } else {
            write!(f, "{statement} (task {task}, line {line})")
        }
    }
}

/// Everything in a workload that the runner cannot carry out, each kind once per line.
pub fn unsupported(workload: &Workload) -> Vec<Unsupported> {
    let mut found = Vec::new();
    for set in &workload.filesets {
        if let SizeDist::LogNormal(..) = set.size {
            found.push(Unsupported {
                task: String::new(),
                line: 0,
                statement: format!("fileset {} with lognormal sizes", set.name),
            });
        }
    }
    for task in &workload.tasks {
        for stmt in task.instances.iter().flatten() {
            collect(task, stmt, &mut found);
        }
    }
    found
}

fn collect(task: &Task, stmt: &Stmt, found: &mut Vec<Unsupported>) {
    if let Some(statement) = missing(task, &stmt.op) {
        let entry = Unsupported {
            task: task.name.clone(),
            line: stmt.line,
            statement,
        };
        if !found.contains(&entry) {
            found.push(entry);
        }
    }
    for inner in stmt.op.bodies().into_iter().flatten() {
        collect(task, inner, found);
    }
}

/// What of the statement is missing; `None` if nothing is.
fn missing(task: &Task, op: &Op) -> Option<String> {
    let part = |what: &str| Some(format!("{} {what}", op.name()));
    match op {
        Op::Pipe { .. } | Op::Expect { .. } => Some(op.name().into()),
        // User space has no other way to ask for a block of pages than by a pool of huge pages.
        Op::Alloc(what) if what.order != HUGE_ORDER => part(&format!("of order {}", what.order)),
        Op::Alloc(what) if what.flags != AllocFlags::Hugetlb => {
            part("with flags other than gfp = \"hugetlb\"")
        }
        // A process with several threads cannot be forked.
        Op::Build { .. } if task.sharing == Sharing::Threads => part("in threads"),
        Op::Parallel { bodies } if bodies.iter().flatten().any(builds) => {
            Some("build in parallel".into())
        }
        // SIGSTOP stops a process, never one thread of it.
        Op::StopSelf if task.sharing == Sharing::Threads => part("in threads"),
        Op::Read(io) | Op::Write(io) | Op::Append(io) if !can_go_direct(io) => {
            part("direct with a block that is no multiple of 4096")
        }
        _ => None,
    }
}

fn can_go_direct(io: &FileIo) -> bool {
    !io.direct || io.block.is_multiple_of(lowmark_spec::machine::PAGE_SIZE)
}

/// Whether there is a `build` in a statement.
fn builds(stmt: &Stmt) -> bool {
    let inner = stmt.op.bodies().into_iter().flatten();
    matches!(stmt.op, Op::Build { .. }) || inner.into_iter().any(builds)
}

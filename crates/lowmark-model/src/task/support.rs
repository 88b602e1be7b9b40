//! Which statements the model can carry out.

use lowmark_spec::workload::{Advice, Condition, Op, Stmt, Workload};

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
            for stmt in body {
                collect(&task.name, stmt, &mut found);
            }
        }
    }
    found
}

fn collect(task: &str, stmt: &Stmt, found: &mut Vec<Unsupported>) {
    if let Some(statement) = missing(&stmt.op) {
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
        collect(task, inner, found);
    }
}

/// What of the statement is missing; `None` if nothing is.
fn missing(op: &Op) -> Option<String> {
    let part = |what: &str| Some(format!("{} {what}", op.name()));
    match op {
        Op::Map { lock: true, .. } => part("with lock"),
        Op::Map { advice, .. } => {
            let advice = advice.and_then(missing_advice)?;
            part(&format!("with advice {advice}"))
        }
        Op::Advise { advice, .. } => missing_advice(*advice).and_then(|advice| part(&advice)),
        Op::Until {
            condition: Condition::KswapdIdle | Condition::Vmstat { .. },
            ..
        }
        | Op::Unmap { .. }
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
        Op::Read(io) | Op::Write(io) | Op::Append(io) => match io.direct {
            true => part("with direct"),
            false => None,
        },
        _ => Some(op.name().into()),
    }
}

/// The name of an advice that the model does not take.
fn missing_advice(advice: Advice) -> Option<String> {
    match advice {
        Advice::Normal
        | Advice::Random
        | Advice::Sequential
        | Advice::Hugepage
        | Advice::Nohugepage
        | Advice::Dontneed => None,
        other => Some(format!("{other:?}").to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_spec::workload::MapKind;

    const ADVICE: [(Advice, Option<&str>); 11] = [
        (Advice::Normal, None),
        (Advice::Random, None),
        (Advice::Sequential, None),
        (Advice::Nohugepage, None),
        (Advice::Willneed, Some("willneed")),
        (Advice::Dontneed, None),
        (Advice::Hugepage, None),
        (Advice::Cold, Some("cold")),
        (Advice::Pageout, Some("pageout")),
        (Advice::Free, Some("free")),
        (Advice::Populate, Some("populate")),
    ];

    /// The same advice is refused wherever it is given.
    #[test]
    fn advice_that_the_model_does_not_take_is_refused() {
        for (advice, name) in ADVICE {
            let map = Op::Map {
                map: 0,
                kind: MapKind::AnonPrivate,
                length: 4096,
                offset: 0,
                advice: Some(advice),
                lock: false,
            };
            let later = Op::Advise {
                map: 0,
                advice,
                range: None,
            };
            let with = name.map(|name| format!("map with advice {name}"));
            assert_eq!(missing(&map), with);
            assert_eq!(missing(&later), name.map(|name| format!("advise {name}")));
        }
    }
}

//! What a run on this system is for the model: the workload inside one more memory cgroup, on a machine that has memory enough.

use super::plan::{memory_of, swap_of};
use crate::undo::OWN;
use lowmark_record::Recording;
use lowmark_spec::Scenario;
use lowmark_spec::workload::{Cgroup, Op, Stmt};
use std::collections::BTreeMap;

/// The cgroup around a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Around {
    /// Version of the cgroups, 1 or 2.
    pub version: u8,
    /// Memory that it may have, bytes.
    pub memory: u64,
    /// Swap that it may have, bytes.
    pub swap: u64,
}

/// A scenario as it runs on a system with memory cgroups of this version, 1 or 2.
pub fn modelled(scenario: &Scenario, version: u8) -> Scenario {
    let around = Around {
        version,
        memory: memory_of(scenario),
        swap: swap_of(scenario),
    };
    inside(scenario, around)
}

/// A scenario inside one more cgroup. That has no name, so that its counters are called as those of the run on the system.
pub fn inside(scenario: &Scenario, around: Around) -> Scenario {
    let mut scenario = scenario.clone();
    let around = Cgroup {
        max: Some(around.memory),
        swap_max: Some(around.swap),
        // A soft limit that is never met makes them those of version 1.
        soft: (around.version == 1).then_some(u64::MAX),
        ..Cgroup::default()
    };
    let workload = &mut scenario.workload;
    for group in &mut workload.cgroups {
        group.parent = Some(group.parent.map_or(0, |parent| parent + 1));
    }
    workload.cgroups.insert(0, around);
    for task in &mut workload.tasks {
        task.cgroup = Some(task.cgroup.map_or(0, |group| group + 1));
        task.instances.iter_mut().flatten().for_each(shift);
    }
    scenario
}

impl Around {
    /// The one of a run on a system; none of other recordings, and of one whose workload has cgroups of its own.
    pub fn of(recording: &Recording) -> Option<Around> {
        let files = &recording.system.as_deref()?.after;
        let (max, version) = [("memory.max", 2), ("memory.limit_in_bytes", 1)]
            .into_iter()
            .find_map(|(file, version)| Some((only(files, file)?, version)))?;
        let swap = match version {
            1 => only(files, "memory.memsw.limit_in_bytes").map(|both| both.saturating_sub(max)),
            _ => only(files, "memory.swap.max"),
        };
        Some(Around {
            version,
            memory: max,
            swap: swap.unwrap_or(u64::MAX),
        })
    }
}

/// The number in a file of the cgroup of a run, if there is one such cgroup.
fn only(files: &BTreeMap<String, String>, name: &str) -> Option<u64> {
    let of_run = |path: &str| {
        let (group, file) = path.rsplit_once('/')?;
        let own = group.split('/').any(|part| part.starts_with(OWN));
        (own && file == name).then_some(())
    };
    let mut found = files.iter().filter(|(path, _)| of_run(path).is_some());
    match (found.next(), found.next()) {
        (Some((_, text)), None) => text.trim().parse().ok(),
        _ => None,
    }
}

/// One more cgroup is before those that a statement names.
fn shift(stmt: &mut Stmt) {
    match &mut stmt.op {
        Op::Reclaim { cgroup, .. } => *cgroup += 1,
        Op::Repeat { body, .. }
        | Op::Until { body, .. }
        | Op::Sample { body, .. }
        | Op::Build { body, .. } => body.iter_mut().for_each(shift),
        Op::Parallel { bodies } => bodies.iter_mut().flatten().for_each(shift),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_spec::{BuiltIn, Overrides, Source, parse};

    #[test]
    fn everything_is_inside_one_more_group() {
        let text = r#"
lowmark = 1
[workload]
name = "two"
title = "Two groups, and a task in none"
[machine]
use = "small-512m-ssd"
ram = "64M"
occupied = "4M"
reserved = "4M"
swap = []
[kernel]
use = "v6.18"
[cgroup.a]
max = "32M"
[cgroup.b]
parent = "a"
[task.one]
cgroup = "b"
run = [ { repeat = 2, do = [ { reclaim = "1M", cgroup = "a" } ] } ]
[task.two]
run = [ { sleep = "1ms" } ]
"#;
        let source = Source {
            name: "two.toml".into(),
            text: text.into(),
        };
        let scenarios = parse(&source, &BuiltIn, &Overrides::default()).expect("a workload");
        let inside = modelled(&scenarios[0], 2).workload;
        let groups: Vec<(&str, Option<usize>)> = inside
            .cgroups
            .iter()
            .map(|group| (group.path.as_str(), group.parent))
            .collect();
        assert_eq!(groups, [("", None), ("a", Some(0)), ("a/b", Some(1))]);
        assert_eq!(inside.cgroups[0].max, Some(56 << 20));
        assert_eq!(inside.cgroups[0].swap_max, Some(0));
        let tasks: Vec<Option<usize>> = inside.tasks.iter().map(|task| task.cgroup).collect();
        assert_eq!(tasks, [Some(2), Some(0)]);
        let repeat = &inside.tasks[0].instances[0][0].op;
        let [reclaim] = repeat.bodies()[0] else {
            panic!("{repeat:?}");
        };
        assert!(matches!(reclaim.op, Op::Reclaim { cgroup: 1, .. }));
        let legacy = modelled(&scenarios[0], 1).workload.cgroups;
        assert!(legacy[0].soft.is_some() && legacy[1].soft.is_none());
    }
}

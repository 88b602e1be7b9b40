//! What a run on this system is for the model: the workload inside one more memory cgroup, on a machine that has memory enough.

use super::plan::{memory_of, swap_of};
use lowmark_spec::Scenario;
use lowmark_spec::workload::{Cgroup, Op, Stmt};

/// A scenario as it runs on a system with memory cgroups of this version, 1 or 2. The cgroup around the workload has no name, so
/// that its counters are called as those of the run on the system.
pub fn modelled(scenario: &Scenario, version: u8) -> Scenario {
    let mut scenario = scenario.clone();
    let around = Cgroup {
        max: Some(memory_of(&scenario)),
        swap_max: Some(swap_of(&scenario)),
        // A soft limit that is never met makes them those of version 1.
        soft: (version == 1).then_some(u64::MAX),
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

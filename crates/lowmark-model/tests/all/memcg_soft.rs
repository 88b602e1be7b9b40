//! Soft limits of memory cgroups of version 1: from whom is reclaimed when memory is short.

use crate::common;
use lowmark_model::{Options, Refusal, check, run};
use lowmark_record::{Kind, Outcome, Recording};
use lowmark_spec::Scenario;

/// 32 MB, two groups of 12 MB each, with a soft limit of the first or without, and a task outside that wants 12 MB more.
fn scenario(kernel: &str, first: &str) -> Scenario {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "soft"
title = "soft"
[machine]
ram = "32M"
cpus = 2
description = "small"
device.sda = {{
  kind = "ssd", size = "2G", position_read = "100us", position_write = "0ns",
  command_read = "20us", command_write = "20us", page = "8us",
}}
swap = {{ device = "sda", start = "1G", size = "128M" }}
[kernel]
use = "{kernel}"
[cgroup.first]
{first}
[cgroup.second]
[barrier.filled]
[barrier.done]
[task.first]
cgroup = "first"
run = [
  {{ map = "m", kind = "anon-private", size = "12M" }},
  {{ touch = "m", access = "write" }},
  {{ barrier = "filled" }},
  {{ barrier = "done" }},
]
[task.second]
cgroup = "second"
run = [
  {{ map = "m", kind = "anon-private", size = "12M" }},
  {{ touch = "m", access = "write" }},
  {{ barrier = "filled" }},
  {{ barrier = "done" }},
]
[task.outside]
run = [
  {{ barrier = "filled" }},
  {{ map = "m", kind = "anon-private", size = "12M" }},
  {{ touch = "m", access = "write" }},
  {{ barrier = "done" }},
]
"#
    );
    common::scenarios(text).remove(0)
}

/// Runs with every invariant checked now and then.
fn record(kernel: &str, first: &str) -> Recording {
    let options = Options {
        events: true,
        check_every: 5000,
    };
    let recording = run(&scenario(kernel, first), &options, &mut |_| {}).expect("it can run");
    assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    recording
}

const KERNELS: [&str; 3] = ["v6.1", "v6.12", "v6.18"];

fn stolen(recording: &Recording, group: &str) -> u64 {
    recording.counters[&format!("cgroup/{group}/memory.stat.pgsteal")]
}

/// What a group has beyond its soft limit goes first; without one both groups give, the one that is the first to be walked
/// through some more.
#[test]
fn the_group_beyond_its_soft_limit_is_reclaimed_first() {
    for kernel in KERNELS {
        let soft = record(kernel, "soft = \"4M\"");
        let (first, second) = (stolen(&soft, "first"), stolen(&soft, "second"));
        assert!(first > 4 * second, "{kernel}: {first}, {second}");
        let plain = record(kernel, "");
        let (first, second) = (stolen(&plain, "first"), stolen(&plain, "second"));
        assert!(first < 4 * second, "{kernel}: {first}, {second}");
    }
}

/// Reclaim for the sake of a soft limit has events of its own, in pairs, and what it takes counts for the group, not for
/// kswapd or direct reclaim of the machine (`cgroup_reclaim`).
#[test]
fn soft_limit_reclaim_has_its_own_events() {
    for kernel in KERNELS {
        let recording = record(kernel, "soft = \"4M\"");
        let events = &recording.events;
        let count = |kind: Kind| events.iter().filter(|event| event.kind == kind).count();
        let begun = count(Kind::MemcgSoftlimitReclaimBegin);
        assert!(begun > 0, "{kernel}");
        // kswapd may be on its way when the run ends.
        let ended = count(Kind::MemcgSoftlimitReclaimEnd);
        assert!(begun - ended <= 1, "{kernel}: {begun}, {ended}");
        let counter = |name: &str| recording.counters[name];
        let machine = counter("pgsteal_kswapd") + counter("pgsteal_direct");
        let all = counter("pgsteal_anon") + counter("pgsteal_file");
        assert!(machine < all, "{kernel}: {machine}, {all}");
        let plain = record(kernel, "");
        let events = &plain.events;
        let soft = |kind| kind == Kind::MemcgSoftlimitReclaimBegin;
        assert!(!events.iter().any(|event| soft(event.kind)), "{kernel}");
    }
}

/// A limit that the group never comes to changes nothing.
#[test]
fn a_soft_limit_beyond_all_memory_changes_nothing() {
    for kernel in ["v6.1", "v6.18"] {
        let far = record(kernel, "soft = \"1G\"");
        assert_eq!(far.counters, record(kernel, "").counters, "{kernel}");
    }
}

/// Kernels whose groups the model lacks are refused by name.
#[test]
fn kernels_without_groups_are_refused() {
    let refused = check(&scenario("v4.11", "soft = \"4M\""));
    let refused = refused.expect_err("groups are those of 4.13 and later");
    assert!(matches!(refused, Refusal::Cgroup { .. }), "{refused}");
    assert!(refused.to_string().contains("from v4.13 on"), "{refused}");
}

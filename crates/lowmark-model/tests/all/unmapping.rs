//! What unmapping takes, and what others find while a task is at it. Every invariant is checked after every event or nearly so.

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::{Outcome, Recording};

/// A task of a memory cgroup unmaps 64 MiB; while it does, another one reclaims from that group as often as is said.
fn record(kernel: &str, enabled: &str, zap: &str, reclaims: u32) -> Recording {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "unmapping"
title = "unmapping"
[machine]
use = "small-512m-ssd"
thp = true
costs = {{ {zap} }}
[kernel]
use = ["{kernel}"]
sysctl = {{ "thp.enabled" = "{enabled}" }}
[cgroup.group]
[barrier.ready]
[task.main]
cgroup = "group"
run = [
  {{ map = "m", kind = "anon-private", size = "64M" }},
  {{ touch = "m", access = "write", passes = 2 }},
  {{ barrier = "ready" }},
  {{ sample = "unmap", do = [{{ unmap = "m" }}] }},
]
[task.other]
run = [
  {{ barrier = "ready" }},
  {{ sleep = "50ms" }},
  {{ repeat = {reclaims}, do = [{{ reclaim = "4M", cgroup = "group" }}] }},
]
"#
    );
    let scenarios = common::scenarios(text);
    let options = Options {
        events: false,
        check_every: 7,
    };
    let recording = run(&scenarios[0], &options, &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    recording
}

/// How long munmap(2) took, ns.
fn unmap(recording: &Recording) -> u64 {
    recording.series[0].samples[0].1
}

/// 100 ms for 64 MiB, in huge pages or in single ones.
const SLOW: &str = r#"zap_page = "6us", zap_huge_page = "3ms""#;

#[test]
fn munmap_takes_as_long_as_its_pages() {
    for kernel in ["v6.1", "v6.18"] {
        for (enabled, expected) in [("never", 16_384 * 6_000), ("always", 32 * 3_000_000)] {
            let slow = unmap(&record(kernel, enabled, SLOW, 0));
            let took = slow - unmap(&record(kernel, enabled, "", 0));
            assert!(
                took.abs_diff(expected) < expected / 20,
                "{kernel} {enabled} {took}"
            );
        }
    }
}

/// `can_split_folio`: a huge page that a task has unmapped and still holds is activated. Where unmapping takes no time none is
/// left when reclaim comes.
#[test]
fn what_is_held_cannot_be_reclaimed() {
    for kernel in ["v6.1", "v6.18"] {
        let activated = |enabled, zap| {
            let counters = record(kernel, enabled, zap, 4).counters;
            (counters["pgactivate"], counters["pgsteal_anon"])
        };
        let (pages, stolen) = activated("always", SLOW);
        assert!(
            pages >= 512 && pages.is_multiple_of(512),
            "{kernel}: {pages}"
        );
        assert!(stolen < 16_384, "{kernel}: {stolen}");
        assert_eq!(activated("always", ""), (0, 0), "{kernel}");
    }
}

//! CPUs share what memory gives: the time of a load that does nothing but touch, clear and fill memory follows from how
//! many run at once, worked out here by hand.

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::{Outcome, Recording};

/// `tasks` processes on 8 CPUs store `passes` times to 4 MB each, 1 us a page. A fault is free but for clearing, 3 us.
fn stores(streams: Option<u32>, tasks: u64, passes: u64) -> Recording {
    let streams = streams.map_or(String::new(), |count| format!("memory_streams = {count}"));
    let workload = format!(
        r#"
lowmark = 1
[workload]
name = "stores"
[machine]
ram = "256M"
cpus = 8
description = "small"
{streams}
device.sda = {{
  kind = "ssd", size = "1G", position_read = "0ns", position_write = "0ns", command_read = "20us", command_write = "20us",
  page = "8us",
}}
costs = {{ touch = "1us", zero_page = "3us", minor_fault = "0ns", context_switch = "0ns", syscall = "0ns" }}
[kernel]
use = "v6.1"
[task.t]
processes = {tasks}
run = [
  {{ map = "m", kind = "anon-private", size = "4M" }},
  {{ touch = "m", access = "write", passes = {passes} }},
]
"#
    );
    let scenarios = common::scenarios(workload);
    let options = Options {
        events: false,
        check_every: 0,
    };
    let recording = run(&scenarios[0], &options, &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed);
    recording
}

/// Pages of a task.
const PAGES: u64 = 1024;

/// What a task takes by itself, ns: clearing each page once, and a store to it in every pass.
fn alone(passes: u64) -> u64 {
    PAGES * (3_000 + passes * 1_000)
}

/// Within half a percent: page tables and ends of tasks take time too.
fn close(found: u64, expected: u64) -> bool {
    found.abs_diff(expected) * 200 <= expected
}

#[test]
fn tasks_beyond_the_bound_share_it() {
    for passes in [1, 50] {
        for (streams, tasks, slower) in [
            (None, 6, 1),
            (Some(6), 6, 1),
            (Some(3), 6, 2),
            (Some(1), 4, 4),
        ] {
            let found = stores(streams, tasks, passes).elapsed_ns;
            let expected = alone(passes) * slower;
            assert!(
                close(found, expected),
                "{tasks} tasks, {streams:?} at full speed, {passes} passes: {found} for {expected} ns"
            );
        }
    }
}

/// One that runs alone after others have ended is as fast as it was before they came.
#[test]
fn a_task_alone_is_at_full_speed() {
    assert!(close(stores(Some(1), 1, 50).elapsed_ns, alone(50)));
}

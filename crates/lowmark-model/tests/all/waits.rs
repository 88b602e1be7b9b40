//! What reclaimers wait for, and what becomes of pages that come back from swap, on kernels before and after each change.

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::{Kind, Outcome, Recording};

/// More private memory than RAM, gone through twice, on a disk that takes 16 MB a second, with little that may be dirty.
fn swapping(kernel: &str) -> Recording {
    swapping_with(kernel, 1)
}

/// The same with so much that may be dirty, percent.
fn swapping_with(kernel: &str, dirty_ratio: u32) -> Recording {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "waits"
title = "waits"
[machine]
ram = "64M"
cpus = 2
description = "small"
device.sda = {{
  kind = "ssd", size = "2G", position_read = "100us", position_write = "0ns",
  command_read = "20us", command_write = "20us", page = "250us",
}}
swap = {{ device = "sda", start = "1G", size = "128M" }}
[kernel]
use = "{kernel}"
sysctl = {{ dirty_ratio = {dirty_ratio} }}
[task.main]
run = [
  {{ map = "m", kind = "anon-private", size = "80M" }},
  {{ touch = "m", access = "write", passes = 2 }},
]
"#
    );
    let options = Options {
        events: true,
        check_every: 0,
    };
    let scenario = common::scenarios(text).remove(0);
    let recording = run(&scenario, &options, &mut |_| {}).expect("it can run");
    assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    recording
}

fn events(recording: &Recording, kind: Kind) -> usize {
    let events = recording.events.iter();
    events.filter(|event| event.kind == kind).count()
}

/// `throttle_vm_writeout` (to 4.8): a reclaimer waits while far more is being written than dirty memory may be.
#[test]
fn what_is_being_written_to_swap_holds_reclaimers_up_to_4_8() {
    let before = swapping("v4.8");
    let without = swapping("v4.8+no-throttle-of-writeout");
    let after = swapping("v4.9");
    assert!(events(&before, Kind::CongestionWait) > 20);
    // What is left are pages that kswapd meets again before they are written.
    for later in [&without, &after] {
        let waits = events(later, Kind::CongestionWait);
        assert!(waits < events(&before, Kind::CongestionWait) / 2, "{waits}");
        assert!(later.elapsed_ns < before.elapsed_ns);
    }
}

/// Where memory has no pages of files the dirty threshold is next to nothing, and reclaimers that swap wait all the time. From 3.4 on
/// reclaimers wait by the smoothed dirty limit where that is higher, and the limit begins with the dirty threshold at boot.
#[test]
fn the_limit_of_boot_lets_swap_be_written_from_3_4_on() {
    let waits = |kernel: &str| events(&swapping_with(kernel, 20), Kind::CongestionWait);
    for kernel in ["v3.14", "v4.7", "v4.8"] {
        let by_limit = waits(kernel);
        let by_threshold = waits(&format!("{kernel}+vm_writeout=threshold"));
        assert!(
            3 * by_limit < by_threshold,
            "{kernel}: {by_limit}, {by_threshold}"
        );
    }
    assert_eq!(waits("v3.3"), waits("v3.3+vm_writeout=threshold"));
}

/// From 4.17 on a direct reclaimer asks for congestion after a pass over the node alone, and only if that was found before.
#[test]
fn direct_reclaimers_ask_for_congestion_after_each_batch_up_to_4_16() {
    let batches = swapping("v4.16");
    let passes = swapping("v4.17");
    let direct = |recording: &Recording| events(recording, Kind::DirectReclaimBegin);
    assert!(direct(&batches) > 0 && direct(&passes) > 0);
    assert!(events(&batches, Kind::WaitIffCongested) >= direct(&batches));
    assert_eq!(events(&passes, Kind::WaitIffCongested), 0);
}

/// From 4.8 to 5.8 a page that a task maps after it was read from swap is active. One that was read without any others is on no
/// list when it is mapped, and stays inactive.
#[test]
fn pages_that_come_back_from_swap_are_active_from_4_8_to_5_8() {
    let activated = |kernel: &str| {
        let recording = swapping(kernel);
        let [back, activated] = ["pswpin", "pgactivate"].map(|name| recording.counters[name]);
        assert!(back > 1000, "{kernel}: {back}");
        (activated, back)
    };
    for (kernel, active) in [
        ("v4.7", false),
        ("v4.8", true),
        ("v5.8", true),
        ("v5.9", false),
    ] {
        let (with_window, back) = activated(&format!("{kernel},page_cluster=3"));
        let nearly_all = with_window >= back - back / 100;
        assert!(!active || nearly_all, "{kernel}: {with_window} of {back}");
        let other = if active { "inactive" } else { "active" };
        let switched = format!("{kernel}+swapped_in={other},page_cluster=3");
        let (switched, _) = activated(&switched);
        assert_eq!(
            with_window > switched,
            active,
            "{kernel}: {with_window}, {switched}"
        );
    }
    let alone = |rule: &str| activated(&format!("v4.8+swapped_in={rule},page_cluster=0"));
    // Some are found in the swap cache while they are being written.
    let ((active, back), (inactive, _)) = (alone("active"), alone("inactive"));
    assert!(
        active.abs_diff(inactive) < back / 8,
        "{active}, {inactive} of {back}"
    );
}

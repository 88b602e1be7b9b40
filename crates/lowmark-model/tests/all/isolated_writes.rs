//! Pages that a reclaimer writes and still has isolated when their write ends.

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::{Outcome, Recording};

/// More huge pages than a node has, written once, on 4.4 with swap on such a disk, which is faster than the CPU.
fn record(kernel: &str, disk: &str) -> Recording {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "isolated-writes"
title = "isolated-writes"
[machine]
nodes = ["512M", "512M"]
cpus = 2
thp = true
{common_disk}max_segments = 254
nr_requests = 256
elevator = "noop"
{disk}
[[machine.swap]]
device = "sda"
start = "0"
size = "1G"
[machine.costs]
swap_page = "20us"
[kernel]
use = "{kernel}"
sysctl = {{ "thp.enabled" = "always", "thp.defrag" = "always" }}
[task.main]
run = [
  {{ map = "m", kind = "anon-private", size = "660M" }},
  {{ touch = "m", access = "write" }},
]
"#,
        common_disk = include_str!("common/small-ssd.toml"),
    );
    let options = Options {
        events: false,
        check_every: 0,
    };
    let scenario = &common::scenarios(text)[0];
    let recording = run(scenario, &options, &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    recording
}

/// Of the pages that were written, those that went to the tail of their list when their write ended, percent.
fn rotated(kernel: &str, disk: &str) -> u64 {
    let counters = record(kernel, disk).counters;
    assert!(
        counters["pswpout"] > 10_000,
        "{kernel} {disk}: {}",
        counters["pswpout"]
    );
    100 * counters["pgrotated"] / counters["pswpout"]
}

/// A write that ends while its page is isolated leaves the page where it is put back (`rotate_reclaimable_page`). Guests of 4.4.0
/// rotate 9 to 14 % of the pages of huge pages that they write to a virtio disk with four queues, all of them with one queue, and
/// 2 % where every page is a request.
#[test]
fn a_plug_keeps_writes_from_ending_before_the_pages_are_back_on_their_list() {
    let behind_scsi = rotated("v4.4", "");
    let one_queue = rotated("v4.4", "driver = \"virtio-blk\"");
    let several = rotated("v4.4", "driver = \"virtio-blk\"\nhardware_queues = 4");
    let nvme = rotated("v4.4", "driver = \"nvme\"\nhardware_queues = 4");
    assert!(behind_scsi >= 90, "{behind_scsi} %");
    assert!(one_queue >= 90, "{one_queue} %");
    assert!((5..=50).contains(&several), "{several} %");
    assert!(nvme <= 3, "{nvme} %");
}

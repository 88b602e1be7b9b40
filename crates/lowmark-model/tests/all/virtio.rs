//! Memory that virtio disks need for requests: who has it, and that all of it is given back.

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::{Outcome, Recording};

/// Private memory larger than RAM, gone through twice, with swap on a disk of this driver.
fn record(kernel: &str, driver: &str, check_every: u64) -> Recording {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "virtio"
title = "virtio"
[machine]
ram = "24M"
cpus = 2
{disk}max_segments = 254
queue_depth = 256
nr_requests = 256
elevator = "noop"
{driver}
[[machine.swap]]
device = "sda"
start = "0"
size = "64M"
[kernel]
use = "{kernel}"
[task.main]
run = [
  {{ map = "m", kind = "anon-private", size = "28M" }},
  {{ touch = "m", access = "write" }},
  {{ touch = "m", access = "write", order = "random", count = 3000 }},
]
"#,
        disk = include_str!("common/small-ssd.toml"),
    );
    let options = Options {
        events: false,
        check_every,
    };
    let recording =
        run(&common::scenarios(text)[0], &options, &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    recording
}

const VIRTIO: &str = "driver = \"virtio-blk\"";

/// Between any two events each object in use belongs to a request that is under way.
#[test]
fn requests_give_back_what_they_take() {
    for kernel in [
        "v5.9",
        "v6.1",
        "v6.18",
        "v6.1,model.slab_pages=on",
        "v6.18,model.slab_pages=on",
    ] {
        record(kernel, VIRTIO, 1);
    }
}

#[test]
fn only_drivers_that_need_memory_take_it() {
    let allocated = |kernel: &str, driver| {
        let counters = record(kernel, driver, 0).counters;
        counters["pgalloc_dma"] + counters["pgalloc_dma32"]
    };
    let without = allocated("v6.18,model.virtio_memory=off", VIRTIO);
    assert_eq!(allocated("v6.18", ""), without);
    assert!(allocated("v6.18", VIRTIO) != without);
    // No kernel of the model before 5.0 has slabs, and up to 3.12 requests are taken alike.
    assert_eq!(allocated("v3.12", ""), allocated("v3.12", VIRTIO));
}

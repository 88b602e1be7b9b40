//! Slabs of several pages: what an allocation of one does when memory is short, and the nodes that CPUs keep for files.

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::event::Field;
use lowmark_record::{Kind, Outcome, Recording};

/// Memory that does not fit into RAM, and beside it inodes of ext4, of which a slab has four pages on two CPUs, and a file that is read.
fn record(kernel: &str, check_every: u64) -> Recording {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "slab-blocks"
title = "slab blocks"
[machine]
ram = "24M"
cpus = 2
{disk}
[[machine.swap]]
device = "sda"
start = "0"
size = "64M"
[machine.filesystem.data]
kind = "ext4"
device = "sda"
[fileset.small]
directories = 10
files = 400
size = "4K"
exists = true
[file.large]
kind = "random"
size = "8M"
[barrier.filled]
[kernel]
use = "{kernel}"
[task.memory]
run = [
  {{ map = "m", kind = "anon-private", size = "24M" }},
  {{ touch = "m", access = "write" }},
  {{ barrier = "filled" }},
  {{ touch = "m", access = "write", order = "random", count = 4000 }},
]
[task.files]
run = [
  {{ read = "large", block = "64K" }},
  {{ barrier = "filled" }},
  {{ stat_walk = "small" }},
]
"#,
        disk = include_str!("common/small-ssd.toml"),
    );
    let options = Options {
        events: true,
        check_every,
    };
    let recording =
        run(&common::scenarios(text)[0], &options, &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    recording
}

/// Wake-ups of kswapd and direct reclaims for blocks of four pages, which nothing but slabs of inodes asks for.
fn for_slabs(kernel: &str) -> [usize; 2] {
    let events = record(kernel, 0).events;
    [Kind::WakeupKswapd, Kind::DirectReclaimBegin].map(|kind| {
        let of_kind = events.iter().filter(|event| event.kind == kind);
        of_kind
            .filter(|event| event.get(Field::Order) == Some(2))
            .count()
    })
}

#[test]
fn a_slab_wakes_and_reclaims_as_the_kernel_says() {
    let [_, reclaims] = for_slabs("v3.3");
    assert!(reclaims > 0);
    let [wakes, reclaims] = for_slabs("v4.4");
    assert!(wakes > 0 && reclaims == 0, "{wakes} {reclaims}");
    let [_, reclaims] = for_slabs("v4.4+slab_block=reclaims");
    assert!(reclaims > 0);
    assert_eq!(for_slabs("v4.4+slab_block=nothing"), [0, 0]);
    assert_eq!(for_slabs("v6.18,model.read_folios=off"), [0, 0]);
}

/// All objects are somebody's at any time, those included that CPUs keep for the trees of files.
#[test]
fn nodes_that_cpus_keep_are_not_lost() {
    for kernel in ["v2.6.36", "v3.3", "v4.12"] {
        record(&format!("{kernel},model.slab_pages=on"), 400);
    }
}

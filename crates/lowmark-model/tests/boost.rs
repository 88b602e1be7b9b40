//! Watermark boost, looked at from outside: whom it sets to work, and that nothing happens without it.

mod common;

use lowmark_model::{Options, run};
use lowmark_record::{Outcome, Recording};

/// Private memory larger than RAM, gone through in order and backward, in a guest with so many pages in use that its
/// kernel reported.
fn record(kernel: &str, occupied: u64) -> Recording {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "boost"
title = "boost"
[machine]
use = "guest-256m"
occupied = "{occupied}p"
zone = [
  {{ kind = "DMA", present = "3998p", managed = "3840p" }},
  {{ kind = "DMA32", present = "61405p", managed = "50246p", initmem = "3330p" }},
]
[kernel]
use = "{kernel}"
[task.main]
run = [
  {{ map = "m", kind = "anon-private", size = "220M" }},
  {{ touch = "m", access = "write" }},
  {{ touch = "m", access = "write", order = "reverse" }},
]
"#
    );
    let scenario = common::scenarios(text).remove(0);
    let recording = run(&scenario, &Options::default(), &mut |_| {}).expect("it can run");
    assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    recording
}

/// In 6.18 batches for a CPU grow until one ends in the unmovable pageblock of ZONE_DMA. kswapd then works for that
/// zone alone and goes past the pages of DMA32, in most runs: of seven guests five did so. Batches of 6.1 are single
/// pages in a zone so small, and stop at its watermark.
#[test]
fn kswapd_works_for_a_small_zone_that_was_boosted() {
    let occupied = [6250, 6257, 6264, 6271, 6278, 6285];
    let skipped = |kernel| occupied.map(|pages| record(kernel, pages).counters["pgskip_dma32"]);
    let often = skipped("v6.18");
    assert!(often.iter().any(|&pages| pages > 10_000), "{often:?}");
    assert_eq!(skipped("v6.1"), [0; 6]);
    for off in [
        "v6.18,watermark_boost_factor=0",
        "v6.18+watermark_boost=off",
    ] {
        assert_eq!(skipped(off), [0; 6], "{off}");
    }
}

/// The setting and the mechanism are the same switch.
#[test]
fn a_factor_of_0_is_no_boost() {
    let [factor, mechanism] = [
        "v6.18,watermark_boost_factor=0",
        "v6.18+watermark_boost=off",
    ]
    .map(|kernel| record(kernel, 6250).counters);
    assert_eq!(factor, mechanism);
    assert_ne!(factor, record("v6.18", 6250).counters);
}

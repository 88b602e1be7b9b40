//! Watermark boost, looked at from outside: whom it sets to work, and that nothing happens without it.

use crate::common::guest;
use lowmark_record::{Event, Field, Kind, Recording};
use std::collections::BTreeSet;

/// Private memory larger than RAM, gone through in order and then in `order`, in a guest with so many pages in use that its
/// kernel reported.
fn record(kernel: &str, occupied: u64, order: &str) -> Recording {
    record_kind("anon-private", kernel, occupied, order)
}

/// The same with memory of a kind.
fn record_kind(kind: &str, kernel: &str, occupied: u64, order: &str) -> Recording {
    let tasks = format!(
        r#"
[task.main]
run = [
  {{ map = "m", kind = "{kind}", size = "220M" }},
  {{ touch = "m", access = "write" }},
  {{ touch = "m", access = "write", order = "{order}" }},
]"#
    );
    guest::record(kernel, 1, occupied, &tasks, &guest::EVENTS)
}

/// In 6.18 batches for a CPU grow until one ends in the unmovable pageblock of ZONE_DMA. kswapd then works for that
/// zone alone and goes past the pages of DMA32, in most runs: of seven guests five did so. Batches of 6.1 are single
/// pages in a zone so small, and stop at its watermark.
#[test]
fn kswapd_works_for_a_small_zone_that_was_boosted() {
    let occupied = [6250, 6264, 6278, 6292, 6306, 6320];
    let skipped =
        |kernel| occupied.map(|pages| record(kernel, pages, "seq").counters["pgskip_dma32"]);
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

/// Shared memory needs nodes of a tree, which are reclaimable: in 6.1, when memory runs short, a pageblock of ZONE_DMA
/// becomes theirs, and what movable pages then take of it boosts the zone. Whether that is when there is too little left
/// in it depends on where in its slab the CPU is, hence on how many pages there are before: a third of the runs goes past
/// the pages of DMA32. Without slabs none does.
#[test]
fn nodes_of_trees_boost_a_small_zone() {
    let skipped = |kernel: &str| {
        let pages = (0..10).map(|run| 5700 + 90 * run);
        let skips = pages.filter(|&occupied| {
            let counters = record_kind("anon-shared", kernel, occupied, "random").counters;
            counters["pgskip_dma32"] > 10_000
        });
        skips.count()
    };
    assert!((2..=6).contains(&skipped("v6.1,model.slab_pages=on")));
    assert_eq!(skipped("v6.1"), 0);
}

/// Going past a page takes the isolation's part of a scan. Writes end meanwhile, and are met as clean pages afterwards.
#[test]
fn skipping_takes_time() {
    const SCAN_PAGE_NS: u64 = 4295;
    let events = record("v6.18", 6306, "seq").events;
    let skipped = |event: &Event| event.get(Field::NrSkipped).unwrap_or(0);
    let longest = events.iter().enumerate();
    let (at, isolated) = longest
        .max_by_key(|(_, event)| skipped(event))
        .expect("there are events");
    let most = skipped(&isolated);
    assert!(most > 10_000, "{most}");
    let shrunk =
        |event: &Event| event.kind == Kind::LruShrinkInactive && event.task == isolated.task;
    let batch = events.iter().skip(at).find(shrunk);
    let batch = batch.expect("the batch's end");
    let time = batch.time_ns - isolated.time_ns;
    assert!(time > most * SCAN_PAGE_NS / 10, "{most} pages in {time} ns");
}

/// kswapd is woken with the flags of the allocation that fails, and with none for a boost.
#[test]
fn a_boost_wakes_kswapd_without_flags() {
    let flags = |kernel| {
        let events = record(kernel, 6306, "seq").events;
        let wakes = events
            .iter()
            .filter(|event| event.kind == Kind::WakeupKswapd);
        wakes
            .map(|event| event.get(Field::GfpFlags).unwrap_or(u64::MAX))
            .collect::<BTreeSet<u64>>()
    };
    let (boosted, plain) = (flags("v6.18"), flags("v6.18+watermark_boost=off"));
    assert!(boosted.contains(&0) && boosted.len() > 1, "{boosted:?}");
    assert!(!plain.contains(&0), "{plain:?}");
}

/// The setting and the mechanism are the same switch.
#[test]
fn a_factor_of_0_is_no_boost() {
    let [factor, mechanism] = [
        "v6.18,watermark_boost_factor=0",
        "v6.18+watermark_boost=off",
    ]
    .map(|kernel| record(kernel, 6250, "reverse").counters);
    assert_eq!(factor, mechanism);
    assert_ne!(factor, record("v6.18", 6250, "reverse").counters);
}

/// Since 6.14 one call of `isolate_lru_folios` goes past 32,768 pages at most, and then takes pages of any zone; before,
/// it went through whole lists.
#[test]
fn pages_are_skipped_up_to_a_bound() {
    let longest = |kernel| {
        let skipped = |pages| {
            let events = record(kernel, pages, "seq").events;
            events
                .iter()
                .filter_map(|event| event.get(Field::NrSkipped))
                .max()
        };
        [6250, 6257, 6264, 6271]
            .map(skipped)
            .into_iter()
            .max()
            .flatten()
    };
    assert_eq!(longest("v6.18"), Some(32 << 10));
    assert!(longest("v6.18+skipped_pages=counted") > Some(32 << 10));
}

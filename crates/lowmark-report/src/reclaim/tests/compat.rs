//! What the kernel's script says of text in its own formats, and of others. The expected figures were taken
//! from the script of 6.1; where LOWMARK_VMSCAN_SCRIPT names it, it is asked again.

use super::captures::script_summary;
use super::*;

/// The kernel's text of 2.6.36, without flag columns.
const OLDEST: &str = "\
          cc1-4242  [003]    91.000100: mm_vmscan_wakeup_kswapd: nid=0 zid=1 order=0
          cc1-4242  [003]    91.000200: mm_vmscan_direct_reclaim_begin: order=0 may_writepage=1 gfp_flags=GFP_HIGHUSER_MOVABLE
          cc1-4242  [003]    91.000300: mm_vmscan_lru_isolate: isolate_mode=0 order=0 nr_requested=32 nr_scanned=32 nr_taken=32 contig_taken=0 contig_dirty=0 contig_failed=0
          cc1-4242  [003]    91.000400: mm_vmscan_writepage: page=ffffea0000000000 pfn=4 flags=RECLAIM_WB_FILE|RECLAIM_WB_ASYNC
          cc1-4242  [003]    91.000500: mm_vmscan_writepage: page=ffffea0000000000 pfn=5 flags=RECLAIM_WB_ANON|RECLAIM_WB_SYNC
          cc1-4242  [003]    91.004200: mm_vmscan_direct_reclaim_end: nr_reclaimed=20
        <...>-4242  [003]    91.005200: mm_vmscan_direct_reclaim_begin: order=3 may_writepage=1 gfp_flags=GFP_KERNEL|GFP_NOWARN
        <...>-4242  [003]    91.006200: mm_vmscan_direct_reclaim_end: nr_reclaimed=1
        <...>-77    [000]    91.006300: mm_vmscan_direct_reclaim_begin: order=1 may_writepage=1 gfp_flags=GFP_KERNEL
 kworker/u8:2-99    [000]    91.006400: mm_vmscan_direct_reclaim_begin: order=1 may_writepage=1 gfp_flags=GFP_KERNEL
 kworker/u8:2-99    [000]    91.006900: mm_vmscan_direct_reclaim_end: nr_reclaimed=1
  Web Content-98    [000]    91.007000: mm_vmscan_direct_reclaim_begin: order=0 may_writepage=1 gfp_flags=GFP_KERNEL
  Web Content-98    [000]    91.007900: mm_vmscan_direct_reclaim_end: nr_reclaimed=1
      kswapd0-29    [001]    91.010000: mm_vmscan_kswapd_wake: nid=0 order=0
      kswapd0-29    [001]    91.010500: mm_vmscan_lru_isolate: isolate_mode=0 order=0 nr_requested=32 nr_scanned=40 nr_taken=32 contig_taken=0 contig_dirty=0 contig_failed=0
      kswapd0-29    [001]    91.011000: mm_vmscan_kswapd_wake: nid=0 order=2
      kswapd0-29    [001]    91.111000: mm_vmscan_kswapd_sleep: nid=0
      kswapd0-29    [001]    91.211000: mm_vmscan_kswapd_wake: nid=0 order=2
";

/// Text that fits the formats built into the script, which no kernel prints as a whole.
const BUILT_IN: &str = "\
          cc1-1     [000] d..1.   10.000100: mm_vmscan_wakeup_kswapd: nid=0 zid=1 order=3 gfp_flags=GFP_KERNEL
          cc1-1     [000] .....   10.000200: mm_vmscan_direct_reclaim_begin: order=3 may_writepage=1 gfp_flags=GFP_KERNEL
          cc1-1     [000] d..1.   10.000300: mm_vmscan_lru_isolate: isolate_mode=0 classzone_idx=2 order=0 nr_requested=32 nr_scanned=33 nr_skipped=0 nr_taken=32 lru=inactive_file
          cc1-1     [000] dN.1.   10.000310: mm_vmscan_lru_isolate: isolate_mode=2 classzone_idx=2 order=0 nr_requested=32 nr_scanned=34 nr_skipped=0 nr_taken=32 lru=inactive_file
          cc1-1     [000] d..1.   10.000320: mm_vmscan_lru_isolate: isolate_mode=0 classzone_idx=2 order=0 nr_requested=32 nr_scanned=35 nr_skipped=0 nr_taken=32 lru=active_anon
          cc1-1     [000] .....   10.000400: mm_vmscan_lru_shrink_inactive: nid=0 nr_scanned=33 nr_reclaimed=30 nr_dirty=0 nr_writeback=0 nr_congested=0 nr_immediate=0 nr_activate_anon=0 nr_activate_file=0 nr_ref_keep=3 nr_unmap_fail=0 priority=12 flags=RECLAIM_WB_FILE|RECLAIM_WB_ASYNC
          cc1-1     [000] .l...   10.000500: mm_vmscan_lru_shrink_inactive: nid=0 nr_scanned=33 nr_reclaimed=30 nr_dirty=0 nr_writeback=0 nr_congested=0 nr_immediate=0 nr_activate_anon=0 nr_activate_file=0 nr_ref_keep=3 nr_unmap_fail=0 priority=12 flags=RECLAIM_WB_FILE|RECLAIM_WB_ASYNC
          cc1-1     [000] .....   10.000600: mm_vmscan_lru_shrink_inactive: nid=0 nr_scanned=33 nr_reclaimed=7 nr_dirty=0 nr_writeback=0 nr_congested=0 nr_immediate=0 nr_activate_anon=0 nr_activate_file=0 nr_ref_keep=3 nr_unmap_fail=0 priority=12 flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC
          cc1-1     [000] .....   10.002200: mm_vmscan_direct_reclaim_end: nr_reclaimed=37
          cc1-2     [000] .....   10.003200: mm_vmscan_direct_reclaim_begin: order=0 may_writepage=1 gfp_flags=GFP_KERNEL
          cc1-2     [000] .....   10.003700: mm_vmscan_direct_reclaim_end: nr_reclaimed=0
          cc1-3     [000] .....   10.003800: mm_vmscan_direct_reclaim_end: nr_reclaimed=0
";

fn agrees(text: &str, ignore_pid: bool) {
    let here = summary(text, ignore_pid).summary_text();
    if let Some(script) = script_summary(text.as_bytes(), ignore_pid, &here) {
        assert_eq!(here, script);
    }
}

#[test]
fn text_of_the_oldest_kernel() {
    let script = summary(OLDEST, false);
    assert_eq!(script.direct_reclaims, Some(5));
    assert_eq!((script.direct.scanned, script.direct.reclaimed), (0, 0));
    assert_eq!(script.direct.write_file_async, 1);
    assert_eq!(script.direct.write_anon_sync, 1);
    assert_eq!((script.requests, script.wakes), (1, Some(2)));
    assert_eq!(format!("{:.6}", script.stalled_s), "0.006400");
    assert_eq!(format!("{:.6}", script.awake_s), "0.101000");
    let names: Vec<&str> = script.processes.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "cc1-4242",
            "-4242",
            "-77",
            "2-99",
            "Content-98",
            "kswapd0-29"
        ]
    );
    // The task without a name has that which its process id had before.
    assert_eq!(script.processes[0].direct_reclaims, 2);
    assert_eq!(script.processes[1].direct_reclaims, 0);
    agrees(OLDEST, false);
    agrees(OLDEST, true);

    let figures = figures(OLDEST);
    assert_eq!(figures.totals(Actor::Direct).scanned, 32);
    assert_eq!(figures.totals(Actor::Direct).reclaimed, Some(23));
    assert_eq!(figures.totals(Actor::Kswapd).scanned, 40);
    assert_eq!(figures.totals(Actor::Kswapd).reclaimed, None);
    assert_eq!(figures.kswapd.wakeups, 2);
}

#[test]
fn text_of_the_built_in_formats() {
    let script = summary(BUILT_IN, false);
    let direct = &script.direct;
    assert_eq!(
        (direct.scanned, direct.file_scanned, direct.anon_scanned),
        (68, 33, 35)
    );
    assert_eq!(
        (
            direct.reclaimed,
            direct.file_reclaimed,
            direct.anon_reclaimed
        ),
        (37, 30, 7)
    );
    assert_eq!(script.processes[0].requests_by_order[3], 1);
    assert_eq!(script.processes[0].direct_by_order[3], 1);
    assert_eq!(format!("{:.6}", script.stalled_s), "0.002500");
    agrees(BUILT_IN, false);
    agrees(BUILT_IN, true);
    let figures = figures(BUILT_IN);
    assert_eq!(figures.totals(Actor::Direct).reclaimed, Some(67));
    let blind = figures
        .corrections()
        .into_iter()
        .find(|c| c.id == "flag-columns");
    assert_eq!(blind.map(|c| c.count), Some(1));
}

#[test]
fn nothing_is_printed_as_nothing() {
    let text = summary("", false).summary_text();
    assert!(
        text.starts_with("Summary\nDirect reclaims:     \t\t\t\n"),
        "{text}"
    );
    assert!(
        text.ends_with("Time kswapd awake:\t\t\t0.00 seconds\n"),
        "{text}"
    );
    agrees("", false);
    // A direct reclaim without an end.
    let begin =
        "rl-1 [001] ..... 1.000000: mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL\n";
    let summary = summary(begin, false);
    assert_eq!(summary.processes[0].direct_reclaims, 1);
    let json = serde_json::to_string(&summary).expect("JSON");
    assert!(
        !summary.text().contains("-0.000") && !json.contains("-0.0"),
        "{json}"
    );
}

#[test]
fn columns_that_the_script_reads() {
    let accepts = |text: &str| CompatReport::accepts_columns(&Columns::of(text.as_bytes()));
    for known in ["", "....", "d..1", "dN.1.", ".....", "Xph0a", "..s.F"] {
        assert!(accepts(known), "{known}");
    }
    for unknown in [
        ".l...", ".B...", "D....", "b....", ".L.1.", "..Z..", "..", "...g",
    ] {
        assert!(!accepts(unknown), "{unknown}");
    }
}

/// Records have `zid` although text does not print it since 4.17.
#[test]
fn records_of_a_release() {
    let tables = {
        let mut tables = Tables::default();
        tables.task(b"kswapd0", 9);
        tables
    };
    use lowmark_record::{Field, Release};
    let wake = Event::new(Kind::KswapdWake, 0, 0, 0).with(&[
        (Field::Nid, 0),
        (Field::Zid, 2),
        (Field::Order, 0),
    ]);
    let wakes = |release: Option<Release>| {
        let mut report = CompatReport::new(release);
        report.event(&wake, &tables);
        report.summary(false).wakes
    };
    assert_eq!(wakes(None), None);
    assert_eq!(wakes(Some(Release::new(4, 16))), None);
    assert_eq!(wakes(Some(Release::new(6, 18))), Some(1));
}

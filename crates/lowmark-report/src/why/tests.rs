//! Judges of the answer: sequences made by hand, one for each rule, and properties of any sequence.

use super::*;
use crate::reclaim::VmstatChange;
use crate::reclaim::tests::read;
use crate::table::PlainStyle;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Lines of task, time in ms and event.
fn lines(events: &[(&str, u64, &str)]) -> String {
    events
        .iter()
        .fold(String::new(), |mut text, (task, ms, event)| {
            let (s, ms) = (100 + ms / 1000, ms % 1000);
            let _ = writeln!(text, "{task:>16} [000] ..... {s}.{ms:03}000: {event}");
            text
        })
}

fn answer_with(text: &str, options: WhyOptions, surroundings: &Surroundings) -> Answer {
    let mut report = WhyReport::new(options);
    let (tables, account) = read(text.as_bytes(), &mut report);
    report.finish(&tables, &account, surroundings)
}

fn answer(events: &[(&str, u64, &str)], surroundings: &Surroundings) -> Answer {
    let text = lines(events);
    let (answer, missed) = {
        let mut report = WhyReport::default();
        let (tables, account) = read(text.as_bytes(), &mut report);
        let missed = account.not_understood.clone();
        (report.finish(&tables, &account, surroundings), missed)
    };
    assert_eq!(missed, BTreeMap::new());
    answer
}

fn counters(counters: &[(&str, u64)]) -> Surroundings {
    let counters = counters.iter().map(|(name, n)| ((*name).to_owned(), *n));
    let change = VmstatChange {
        counters: counters.collect(),
        fell: Vec::new(),
    };
    Surroundings::of_vmstat(&change)
}

/// Time of a cause, ns.
fn time(answer: &Answer, id: &str) -> u64 {
    let rows = answer.account.rows.iter();
    let row = rows.into_iter().find(|row| row.cause.id == id);
    row.map_or(0, |row| row.finding.total_ns())
}

const MS: u64 = 1_000_000;
const ANON: &str =
    "mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_HIGHUSER_MOVABLE|__GFP_ZERO|__GFP_COMP";
const SWAP: &str =
    "mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_HIGHUSER_MOVABLE|__GFP_COMP";
const FILE: &str = "mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_NOFS|__GFP_HIGHMEM|__GFP_MOVABLE|__GFP_NOWARN|__GFP_NORETRY|__GFP_HARDWALL";
const THP: &str = "mm_vmscan_direct_reclaim_begin: order=9 gfp_flags=GFP_TRANSHUGE";
const END: &str = "mm_vmscan_direct_reclaim_end: nr_reclaimed=32";
const MEMCG: &str = "mm_vmscan_memcg_reclaim_begin: order=0 gfp_flags=GFP_HIGHUSER_MOVABLE";
const MEMCG_END: &str = "mm_vmscan_memcg_reclaim_end: nr_reclaimed=32";

#[test]
fn what_is_asked_for_decides_where_it_can() {
    let answer = answer(
        &[
            ("a-1", 0, ANON),
            ("a-1", 30, END),
            ("b-2", 40, SWAP),
            ("b-2", 100, END),
            ("c-3", 110, FILE),
            ("c-3", 120, END),
            ("d-4", 130, THP),
            ("d-4", 131, END),
        ],
        &counters(&[
            ("pswpin", 300),
            ("workingset_refault_anon", 300),
            ("pgpgin", 4 * 700),
            ("workingset_refault_file", 400),
            ("pgsteal_anon", 600),
            ("pgsteal_file", 400),
        ]),
    );
    // Of the 60 ms for other pages half came back; all pages of files had been there.
    assert_eq!(time(&answer, "G1"), 30 * MS);
    assert_eq!(time(&answer, "G2"), 60 * MS);
    assert_eq!(time(&answer, "G3"), 10 * MS);
    assert_eq!(time(&answer, "F1"), MS);
    assert_eq!(answer.demand(), Some("G2"));
    assert_eq!(answer.limit(), Some(Limit::Global));
    let first = &answer.stalls[0];
    assert_eq!(
        (first.task.as_str(), first.wait.begin_ns),
        ("b-2", 100_040 * MS)
    );
    assert_eq!(answer.stalls.len(), 4);
    assert!(
        answer
            .sentence
            .starts_with("Tasks waited 101 ms for memory; 59 % of it because"),
        "{}",
        answer.sentence
    );
    assert_eq!(answer.episode_count, 1, "gaps are shorter than 100 ms");
}

#[test]
fn what_happens_inside_is_part_of_the_wait_and_counted_once() {
    let throttled = "mm_vmscan_throttled: nid=0 usec_timeout=100000 usect_delayed=60000 reason=VMSCAN_THROTTLE_WRITEBACK";
    let slab = "mm_shrink_slab_start: super_cache_scan+0x0/0x1 00000000: nid: 0 objects to shrink 0 gfp_flags GFP_KERNEL cache items 1 delta 0 total_scan 1 priority 12";
    let slab_end = "mm_shrink_slab_end: super_cache_scan+0x0/0x1 00000000: nid: 0 unused scan count 0 new scan count 0 total_scan 0 last shrinker return val 0";
    let answer = answer(
        &[
            ("a-1", 0, ANON),
            ("a-1", 70, throttled),
            ("a-1", 70, slab),
            ("a-1", 90, slab_end),
            ("a-1", 100, END),
        ],
        &Surroundings::default(),
    );
    assert_eq!(answer.account.traced_ns, 100 * MS);
    assert_eq!(
        (time(&answer, "G8"), time(&answer, "S1")),
        (60 * MS, 20 * MS)
    );
    let inside = answer.stalls[0].wait.inside;
    assert_eq!((inside.writeback_ns, inside.slab_ns), (60 * MS, 20 * MS));
    assert_eq!(answer.demand(), Some("G2"));
}

#[test]
fn without_counters_it_says_what_it_cannot_say() {
    let answer = answer(
        &[("a-1", 0, MEMCG), ("a-1", 9, MEMCG_END)],
        &Surroundings::default(),
    );
    assert_eq!(answer.limit(), Some(Limit::Memcg));
    assert_eq!(answer.demand(), None);
    let gap = &answer.account.gaps[0];
    assert_eq!(gap.time_ns, 9 * MS);
    assert!(
        answer.sentence.contains("the capture does not say"),
        "{}",
        answer.sentence
    );
}

#[test]
fn pressure_beyond_what_is_traced_is_waits_for_pages_that_came_back() {
    let events = [("a-1", 0, SWAP), ("a-1", 40, END)];
    let mut known = counters(&[
        ("workingset_refault_anon", 900),
        ("pswpin", 900),
        ("pgsteal_anon", 900),
        ("pgsteal_file", 0),
    ]);
    known.memory_pressure = Some(Pressure { some_ns: 100 * MS });
    let answer = answer(&events, &known);
    let account = &answer.account;
    assert_eq!(
        (account.traced_ns, account.estimated_ns),
        (40 * MS, 60 * MS)
    );
    assert_eq!(time(&answer, "G1"), 100 * MS);
    assert!(
        answer.sentence.contains("(40 ms traced, 60 ms estimated)"),
        "{}",
        answer.sentence
    );
}

/// Where no event was recorded, counters say whether tasks reclaimed, which earlier watermarks would change.
#[test]
fn tasks_that_reclaim_are_known_by_counters_as_well() {
    let refaults = [("workingset_refault_anon", 900), ("pswpin", 900)];
    let of = |stalls: u64| {
        let stalls = [("pgsteal_anon", 900), ("allocstall_dma32", stalls)];
        let mut known = counters(&[refaults, stalls].concat());
        known.memory_pressure = Some(Pressure { some_ns: 100 * MS });
        answer(&[], &known)
    };
    let named = |knobs: &[Advised]| {
        let mut names = knobs.iter().map(|advised| advised.name);
        names.any(|name| name == "vm.watermark_scale_factor")
    };
    assert!(named(&of(7).acts) && !named(&of(7).useless));
    assert!(named(&of(0).useless) && !named(&of(0).acts));
}

#[test]
fn a_wait_without_an_end_is_told() {
    let events = [
        ("a-1", 0, ANON),
        ("kcompactd0-4", 1, THP),
        (
            "a-1",
            800,
            "mm_vmscan_wakeup_kswapd: nid=0 order=0 gfp_flags=GFP_KERNEL",
        ),
    ];
    let answer = answer(&events, &Surroundings::default());
    assert!(answer.found);
    let said = "No wait for memory came to its end. One wait had not ended when the capture ended: it had lasted 800 ms by then.";
    assert_eq!(answer.sentence, said);
}

/// What no kernel has said makes no wait and no thresholds, and a count of pages below zero that comes with it is no fault
/// of the kernel.
#[test]
fn impossible_events_of_writers_are_left_out() {
    let pause = |dirtied: u64, pause: u64| {
        format!(
            "balance_dirty_pages: bdi 254:0: limit=4000 setpoint=1 dirty={dirtied} wb_setpoint=1 wb_dirty=1 \
             dirty_ratelimit=1 task_ratelimit=0 dirtied={dirtied} dirtied_pause=32 paused=0 pause={pause} period=200 \
             think=0 cgroup_ino=1"
        )
    };
    let (possible, impossible) = (pause(8, 5), pause(u64::MAX, 5));
    let text = lines(&[("a-1", 0, &impossible), ("a-1", 100, &impossible)]);
    let mut report = WhyReport::default();
    let (tables, account) = read(text.as_bytes(), &mut report);
    assert_eq!(report.impossible(), 2);
    let left_out = report.finish(&tables, &account, &Surroundings::default());
    assert!(
        !left_out.found && left_out.faults.is_empty(),
        "{}",
        left_out.sentence
    );
    let too_long = pause(8, 5000);
    let events = [("a-1", 0, too_long.as_str()), ("a-1", 100, &possible)];
    let answer = answer(&events, &Surroundings::default());
    assert_eq!(answer.account.traced_ns, 5 * MS);
    let text = answer.text(&PlainStyle, None);
    assert!(text.contains(" 1 pause\n"), "{text}");
    // There are no counters that it could go by.
    assert_eq!(answer.account.rows[0].confidence, Confidence::Exact);
}

#[test]
fn kernel_threads_do_not_wait() {
    let events = [
        ("kswapd0-40", 0, "mm_vmscan_kswapd_wake: nid=0 order=0"),
        (
            "kcompactd0-41",
            5,
            "mm_compaction_begin: zone_start=0x1 migrate_pfn=0x1 free_pfn=0x2 zone_end=0x2, mode=sync",
        ),
        (
            "kcompactd0-41",
            9,
            "mm_compaction_end: zone_start=0x1 migrate_pfn=0x1 free_pfn=0x2 zone_end=0x2, mode=sync status=complete",
        ),
        ("kswapd0-40", 10, "mm_vmscan_kswapd_sleep: nid=0"),
    ];
    let mut known = counters(&[("pswpin", 0), ("pgsteal_anon", 5), ("pgsteal_file", 5)]);
    known.memory_pressure = Some(Pressure { some_ns: 9 * MS });
    let answer = answer(&events, &known);
    assert!(!answer.found, "{}", answer.sentence);
    assert_eq!(answer.account.threads_ns, 9 * MS);
    assert!(
        answer.sentence.starts_with("Nothing found"),
        "{}",
        answer.sentence
    );
}

#[test]
fn kswapd_is_outrun_or_asleep() {
    let wake = ("kswapd0-40", 0, "mm_vmscan_kswapd_wake: nid=0 order=0");
    let sleep = ("kswapd0-40", 100, "mm_vmscan_kswapd_sleep: nid=0");
    let awake = answer(
        &[wake, ("a-1", 10, ANON), ("a-1", 90, END), sleep],
        &Surroundings::default(),
    );
    assert_eq!((time(&awake, "G5"), time(&awake, "G6")), (80 * MS, 0));
    let asleep = [wake, sleep, ("a-1", 110, ANON), ("a-1", 130, END)];
    let asleep = answer(&asleep, &Surroundings::default());
    assert_eq!((time(&asleep, "G5"), time(&asleep, "G6")), (0, 20 * MS));
}

#[test]
fn a_burst_is_what_watermarks_could_hold() {
    let shrink = "mm_vmscan_lru_shrink_inactive: nid=0 nr_scanned=900 nr_reclaimed=800 nr_dirty=0 nr_writeback=0 nr_congested=0 nr_immediate=0 nr_activate_anon=0 nr_activate_file=0 nr_ref_keep=0 nr_unmap_fail=0 priority=12 flags=RECLAIM_WB_FILE|RECLAIM_WB_ASYNC";
    let events = [
        ("kswapd0-40", 0, "mm_vmscan_kswapd_wake: nid=0 order=0"),
        ("a-1", 10, ANON),
        ("kswapd0-40", 20, shrink),
        ("a-1", 90, END),
        ("kswapd0-40", 100, "mm_vmscan_kswapd_sleep: nid=0"),
    ];
    let of = |managed| {
        let known = Surroundings {
            managed: Some(managed),
            ..Surroundings::default()
        };
        let answer = answer(&events, &known);
        (time(&answer, "G5"), time(&answer, "G6"))
    };
    assert_eq!(of(9_000), (0, 80 * MS), "a tenth of it is more");
    assert_eq!(of(8_000 - 10), (80 * MS, 0));
    // Whether it was a burst is not known before kswapd sleeps.
    let cut = answer(&events[..4], &Surroundings::default());
    assert_eq!((time(&cut, "G5"), time(&cut, "G6")), (80 * MS, 0));
}

#[test]
fn a_pool_of_huge_pages_takes_nothing_smaller() {
    let pool = "mm_vmscan_direct_reclaim_begin: order=9 gfp_flags=GFP_HIGHUSER_MOVABLE|__GFP_NOWARN|__GFP_RETRY_MAYFAIL|__GFP_COMP";
    let charge = "mm_vmscan_memcg_reclaim_begin: order=9 gfp_flags=GFP_HIGHUSER_MOVABLE";
    let answer = answer(
        &[
            ("a-1", 0, pool),
            ("a-1", 9, END),
            ("b-2", 20, charge),
            ("b-2", 22, MEMCG_END),
        ],
        &Surroundings::default(),
    );
    assert_eq!(answer.demand(), Some("F5"));
    assert_eq!(answer.limit(), Some(Limit::Fragmentation));
    assert_eq!((time(&answer, "F5"), time(&answer, "F2")), (9 * MS, 0));
}

#[test]
fn writers_pause_at_a_limit_of_the_device_or_of_a_share() {
    let state = "global_dirty_state: dirty=3000 writeback=900 bg_thresh=1000 thresh=4000 limit=4000 dirtied=1 written=1";
    let pause = |pause: u64, share: bool| {
        let (dirty, bdi_dirty) = if share { (10, 90) } else { (900, 10) };
        format!(
            "balance_dirty_pages: bdi 254:0: limit=4000 setpoint=800 dirty={dirty} wb_setpoint=50 wb_dirty={bdi_dirty} \
             dirty_ratelimit=1 task_ratelimit=1 dirtied=1 dirtied_pause=32 paused=0 pause={pause} period=200 think=0 cgroup_ino=1"
        )
    };
    let rate = |kbps: u64| {
        format!(
            "bdi_dirty_ratelimit: bdi 254:0: write_bw={kbps} awrite_bw={kbps} dirty_rate=1 dirty_ratelimit=1 task_ratelimit=1 balanced_dirty_ratelimit=1 cgroup_ino=1"
        )
    };
    let of = |share: bool, kbps: u64| {
        let (pause, rate) = (pause(40, share), rate(kbps));
        answer(
            &[("dd-1", 0, state), ("dd-1", 1, &rate), ("dd-1", 2, &pause)],
            &Surroundings::default(),
        )
    };
    // 16,000 KiB are 0.8 s at 20,000 KiB/s, and 32 ms at 500,000.
    let demands = [of(false, 20_000), of(false, 500_000), of(true, 20_000)];
    let demands = demands.iter().map(|answer| answer.demand());
    assert_eq!(
        demands.collect::<Vec<_>>(),
        [Some("D1"), Some("D2"), Some("D3")]
    );
    let answer = of(false, 20_000);
    assert_eq!(
        (answer.limit(), time(&answer, "D1")),
        (Some(Limit::Dirty), 40 * MS)
    );
    assert!(
        answer
            .useless
            .iter()
            .any(|knob| knob.name == "vm.swappiness")
    );
}

#[test]
fn a_window_cuts_waits_and_a_task_leaves_others_out() {
    let text = lines(&[
        ("a-1", 0, ANON),
        ("a-1", 50, END),
        ("b-2", 100, ANON),
        ("b-2", 160, END),
    ]);
    let none = Surroundings::default();
    let options = WhyOptions {
        from_ns: Some(100_020 * MS),
        to_ns: Some(100_110 * MS),
        ..WhyOptions::default()
    };
    assert_eq!(
        answer_with(&text, options, &none).account.traced_ns,
        40 * MS
    );
    let task = |task: &str| WhyOptions {
        task: Some(task.to_owned()),
        ..WhyOptions::default()
    };
    for (name, expected) in [("a", 50), ("b-2", 60), ("c", 0)] {
        let answer = answer_with(&text, task(name), &none);
        assert_eq!(answer.account.traced_ns, expected * MS, "{name}");
    }
}

/// Three pauses of 40 ms at a device's share: one before the window, one that reaches 10 ms into it, one within.
#[test]
fn a_window_cuts_what_is_told_of_pauses() {
    let pause = "balance_dirty_pages: bdi 8:0: limit=4000 setpoint=800 dirty=700 bdi_setpoint=50 bdi_dirty=60 \
                 dirty_ratelimit=1 task_ratelimit=1 dirtied=1 dirtied_pause=32 paused=0 pause=40 period=40 think=0";
    let text = lines(&[
        ("dd-1", 0, pause),
        ("dd-1", 100, pause),
        ("dd-1", 200, pause),
    ]);
    let options = WhyOptions {
        from_ns: Some(100_130 * MS),
        to_ns: Some(100_300 * MS),
        ..WhyOptions::default()
    };
    let answer = answer_with(&text, options, &Surroundings::default());
    assert_eq!(answer.account.traced_ns, 50 * MS);
    assert_eq!(time(&answer, "D3"), 50 * MS);
}

#[test]
fn faults_need_their_version_and_their_pattern() {
    let dirty = "balance_dirty_pages: bdi 254:0: limit=4000 setpoint=800 dirty=18446744073709551614 wb_setpoint=50 wb_dirty=1 \
                 dirty_ratelimit=1 task_ratelimit=1 dirtied=1 dirtied_pause=32 paused=0 pause=200 period=200 think=0 cgroup_ino=1";
    let named = |kernel: Option<&str>| {
        let known = Surroundings {
            kernel: kernel.map(str::to_owned),
            ..Surroundings::default()
        };
        let faults = answer(&[("dd-1", 0, dirty)], &known).faults;
        faults
            .iter()
            .map(|(fault, known)| (fault.name, *known))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        named(Some("5.15.0-63-generic")),
        [("dirty-below-zero", true)]
    );
    assert_eq!(named(None), [("dirty-below-zero", false)]);
    assert_eq!(named(Some("6.1.0")), []);
}

/// Ids of what is found in events with what else is known.
fn found(events: &[(&str, u64, &str)], known: &Surroundings) -> BTreeSet<&'static str> {
    let rows = answer(events, known).account.rows;
    rows.iter().map(|row| row.cause.id).collect()
}

#[test]
fn groups_are_told_apart_by_their_events() {
    let wait = [("a-1", 0, MEMCG), ("a-1", 9, MEMCG_END)];
    let counted = |max, high| {
        counters(&[
            ("cgroup/box/memory.events.max", max),
            ("cgroup/box/memory.events.high", high),
        ])
    };
    let ids = |known: &Surroundings| {
        let ids = found(&wait, known);
        ["M1", "M2"].map(|id| ids.contains(id))
    };
    assert_eq!(ids(&Surroundings::default()), [true, false]);
    assert_eq!(ids(&counted(3, 0)), [true, false]);
    assert_eq!(ids(&counted(0, 3)), [false, true]);
}

#[test]
fn waits_for_io_are_not_waits_for_memory() {
    let known = |memory_ms: u64, io_ms: u64| Surroundings {
        memory_pressure: Some(Pressure {
            some_ns: memory_ms * MS,
        }),
        io_pressure: Some(Pressure {
            some_ns: io_ms * MS,
        }),
        ..Surroundings::default()
    };
    let answer_of = |known: &Surroundings| answer(&[("a-1", 0, END)], known);
    let io = answer_of(&known(10, 1000));
    assert!(io.found && io.account.total_ns() == 0);
    assert!(
        io.sentence.contains("tasks waited for I/O (X1)"),
        "{}",
        io.sentence
    );
    assert!(!answer_of(&known(300, 1000)).found);
}

/// Each rarer cause is found where its evidence is, and not without it.
#[test]
fn rarer_causes_are_found_by_their_evidence() {
    let none = Surroundings::default();
    let quiet = [("a-1", 0, ANON), ("a-1", 9, END)];
    let absent = found(&quiet, &none);
    let expect = |id: &str, events: &[(&str, u64, &str)], known: &Surroundings| {
        assert!(!absent.contains(id), "{id} without its evidence");
        assert!(found(events, known).contains(id), "{id}");
    };
    let used = "mm_vmscan_lru_shrink_inactive: nid=0 nr_scanned=100 nr_reclaimed=1 nr_dirty=0 nr_writeback=0 nr_congested=0 nr_immediate=0 nr_activate_anon=60 nr_activate_file=0 nr_ref_keep=30 nr_unmap_fail=0 priority=12 flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC";
    expect(
        "G7",
        &[("a-1", 0, ANON), ("a-1", 5, used), ("a-1", 9, END)],
        &none,
    );
    let isolated = "mm_vmscan_throttled: nid=0 usec_timeout=20000 usect_delayed=8000 reason=VMSCAN_THROTTLE_ISOLATED";
    expect(
        "G9",
        &[("a-1", 0, ANON), ("a-1", 9, isolated), ("a-1", 9, END)],
        &none,
    );
    expect("G10", &quiet, &counters(&[("pgscan_direct_throttle", 1)]));
    let mut full = counters(&[
        ("pswpin", 0),
        ("pgpgin", 400),
        ("workingset_refault_file", 50),
        ("pgsteal_anon", 0),
        ("pgsteal_file", 90),
    ]);
    full.meminfo = [("SwapTotal".to_owned(), 0), ("SwapFree".to_owned(), 0)].into();
    expect("G11", &[("a-1", 0, FILE), ("a-1", 9, END)], &full);
    let unbalanced = counters(&[
        ("pgscan_anon", 100_000),
        ("pgscan_file", 1000),
        ("workingset_refault_anon", 100),
        ("workingset_refault_file", 9000),
    ]);
    expect("G12", &quiet, &unbalanced);
    let large = "mm_vmscan_direct_reclaim_begin: order=5 gfp_flags=GFP_KERNEL|__GFP_COMP";
    expect("F5", &[("a-1", 0, large), ("a-1", 9, END)], &none);
    let retreats = format!("{large}|__GFP_NORETRY");
    expect("F2", &[("a-1", 0, &retreats), ("a-1", 9, END)], &none);
    let boosted = Surroundings {
        boost: Some(7),
        ..Surroundings::default()
    };
    expect("F3", &quiet, &boosted);
    let wakeup = "mm_vmscan_wakeup_kswapd: nid=0 order=10 gfp_flags=GFP_KERNEL|__GFP_COMP";
    expect("F4", &[("a-1", 0, wakeup)], &none);
    let node = "mm_vmscan_node_reclaim_begin: nid=1 order=0 gfp_flags=GFP_HIGHUSER_MOVABLE";
    let node_end = "mm_vmscan_node_reclaim_end: nr_reclaimed=4";
    expect("N1", &[("a-1", 0, node), ("a-1", 9, node_end)], &none);
    expect("P1", &[("kdamond.0-9", 0, used)], &none);
    expect("X2", &[("a-1", 0, "mark_victim: pid=12")], &none);
}

#[test]
fn declarations_are_whole() {
    let ids: BTreeSet<&str> = CAUSES.iter().map(|cause| cause.id).collect();
    assert_eq!(ids.len(), CAUSES.len(), "ids are unique");
    for cause in CAUSES {
        for text in [
            cause.name,
            cause.because,
            cause.needs,
            cause.formula,
            cause.kernels,
        ] {
            assert!(
                !text.is_empty() && !text.ends_with('.'),
                "{}: {text}",
                cause.id
            );
        }
        assert!(cause.summary.ends_with('.'), "{}", cause.id);
        for knob in cause.knobs {
            let acts = !knob.expect.is_empty();
            assert!(
                acts || knob.useless.is_some(),
                "{}: {}",
                cause.id,
                knob.name
            );
        }
    }
}

#[test]
fn every_cause_is_in_the_documentation() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/causes.md");
    let page = std::fs::read_to_string(page).expect("docs/causes.md");
    assert_eq!(page, documentation(), "make docs writes it");
}

/// What holds of every answer.
fn check(answer: &Answer) {
    let account = &answer.account;
    let limits: u64 = account.limits.iter().map(|row| row.traced_ns).sum();
    assert_eq!(limits, account.traced_ns, "limits");
    let estimated: u64 = account.limits.iter().map(|row| row.estimated_ns).sum();
    assert_eq!(estimated, account.estimated_ns, "limits, estimated");
    let demands = account.of_role(Role::Demand);
    let (mut traced, mut estimated) = (0, 0);
    for row in demands {
        traced += row.finding.traced_ns;
        estimated += row.finding.estimated_ns;
    }
    let gaps: u64 = account.gaps.iter().map(|gap| gap.time_ns).sum();
    assert_eq!(
        traced + gaps,
        account.traced_ns,
        "demands and what cannot be said"
    );
    assert_eq!(estimated, account.estimated_ns, "demands, estimated");
    let inside: u64 = account
        .of_role(Role::Inside)
        .map(|row| row.finding.total_ns())
        .sum();
    assert!(inside <= account.traced_ns, "inside");
    let lengths: Vec<u64> = answer
        .stalls
        .iter()
        .map(|stall| stall.wait.length_ns())
        .collect();
    assert!(lengths.is_sorted_by(|a, b| a >= b), "{lengths:?}");
    for stall in &answer.stalls {
        assert!(stall.wait.inside.total_ns() <= stall.wait.length_ns());
    }
    assert!(
        answer
            .text(&PlainStyle, Some(60))
            .contains(answer.sentence.split(' ').next().unwrap_or(""))
    );
    assert!(answer.json().is_object());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Lines of any order, of which some are missing: no panic, and every cut adds up.
    #[test]
    fn any_sequence_is_accounted_for(
        picks in prop::collection::vec((0usize..15, 0u64..3000, 1u32..4), 0..60),
        back in 0u64..1000,
        pressure in prop::option::of(0u64..4_000_000_000),
    ) {
        let kinds = [
            ANON, SWAP, FILE, THP, END, END, END, MEMCG, MEMCG_END,
            "mm_vmscan_throttled: nid=0 usec_timeout=100000 usect_delayed=900000 reason=VMSCAN_THROTTLE_NOPROGRESS",
            "mm_compaction_begin: zone_start=0x1 migrate_pfn=0x1 free_pfn=0x2 zone_end=0x2, mode=sync",
            "mm_compaction_end: zone_start=0x1 migrate_pfn=0x1 free_pfn=0x2 zone_end=0x2, mode=sync status=complete",
            "mm_vmscan_direct_reclaim_begin: order=1 gfp_flags=GFP_KERNEL",
            "mm_vmscan_direct_reclaim_begin: order=6 gfp_flags=GFP_KERNEL",
            "mm_vmscan_wakeup_kswapd: nid=0 order=9 gfp_flags=GFP_TRANSHUGE",
        ];
        let tasks: Vec<String> = (0..4).map(|n| format!("t-{n}")).collect();
        let events: Vec<(&str, u64, &str)> = picks
            .iter()
            .map(|(kind, ms, task)| (tasks[*task as usize].as_str(), *ms, kinds[*kind]))
            .collect();
        let mut known = counters(&[
            ("pswpin", back),
            ("workingset_refault_anon", back),
            ("pgsteal_anon", 700),
            ("pgsteal_file", 20),
            ("pgpgin", 9000),
            ("workingset_refault_file", 300),
        ]);
        known.memory_pressure = pressure.map(|some_ns| Pressure { some_ns });
        let text = lines(&events);
        for surroundings in [&known, &Surroundings::default()] {
            let answer = answer_with(&text, WhyOptions::default(), surroundings);
            check(&answer);
            let again = answer_with(&text, WhyOptions::default(), surroundings);
            prop_assert_eq!(answer.json(), again.json());
        }
        if !events.iter().any(|(_, _, event)| event.contains("_begin") || event.contains("throttled")) {
            let answer = answer_with(&text, WhyOptions::default(), &Surroundings::default());
            prop_assert!(!answer.found, "{}", answer.sentence);
        }
    }
}

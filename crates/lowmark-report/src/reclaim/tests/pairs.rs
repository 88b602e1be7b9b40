//! Each rule of begins and ends, in the corrected form and in that of the kernel's script.

use super::*;

/// Sum of direct reclaim, µs, here and by the script, ms without and with `--ignore-pid`.
fn stalls(events: &[(&str, f64, &str)]) -> (u64, f64, f64) {
    let text = lines(events);
    let here = figures(&text).span(Span::Direct).quantiles().sum_us;
    let ms = |ignore_pid| (summary(&text, ignore_pid).stalled_s * 1e6).round() / 1e3;
    (here, ms(false), ms(true))
}

fn direct(events: &[(&str, f64, &str)]) -> Pairs {
    figures(&lines(events)).pairs[Span::Direct as usize]
}

fn ids(events: &[(&str, f64, &str)]) -> Vec<&'static str> {
    let corrections = figures(&lines(events)).corrections();
    corrections.iter().map(|c| c.id).collect()
}

#[test]
fn a_pair() {
    let events = [("cc1-7", 0.0, BEGIN), ("cc1-7", 4.25, END)];
    assert_eq!(stalls(&events), (4250, 4.25, 4.25));
    assert_eq!(ids(&events), Vec::<&str>::new());
}

#[test]
fn an_end_forgets_its_begin() {
    let events = [
        ("cc1-7", 0.0, BEGIN),
        ("cc1-7", 1.0, END),
        ("cc1-7", 10.0, END),
    ];
    assert_eq!(stalls(&events), (1000, 11.0, 11.0));
    assert_eq!(direct(&events).ends_without_begin, 1);
    let corrections = figures(&lines(&events)).corrections();
    assert_eq!(corrections.len(), 1);
    assert_eq!(corrections[0].id, "end-without-begin");
    assert_eq!(corrections[0].script, Some(0.011));
    assert_eq!(corrections[0].here, Some(0.001));
}

#[test]
fn an_end_before_any_begin_loses_nothing() {
    let events = [
        ("cc1-7", 0.0, END),
        ("cc1-7", 1.0, BEGIN),
        ("cc1-7", 3.0, END),
    ];
    assert_eq!(stalls(&events), (2000, 0.0, 0.0));
    assert_eq!(
        ids(&events),
        ["end-without-begin", "stalls-lost-behind-hole"]
    );
}

#[test]
fn a_begin_without_end() {
    let events = [
        ("cc1-7", 0.0, BEGIN),
        ("cc1-7", 1.0, END),
        ("cc1-7", 2.0, BEGIN),
        ("sh-8", 5.0, BEGIN),
        ("sh-8", 6.0, END),
    ];
    assert_eq!(stalls(&events), (2000, 2.0, 2.0));
    let pairs = direct(&events);
    assert_eq!((pairs.begins, pairs.open_at_end), (3, 1));
    assert_eq!(pairs.open_ns, 4_000_000);
    assert_eq!(ids(&events), ["begin-without-end"]);
}

#[test]
fn nested_begins() {
    let events = [
        ("cc1-7", 0.0, BEGIN),
        ("cc1-7", 2.0, BEGIN),
        ("cc1-7", 3.0, END),
    ];
    assert_eq!(stalls(&events), (1000, 1.0, 1.0));
    let pairs = direct(&events);
    assert_eq!((pairs.begins, pairs.nested_begins), (2, 1));
    assert_eq!(ids(&events), ["nested-begin"]);
}

#[test]
fn times_that_go_back() {
    let events = [("cc1-7", 5.0, BEGIN), ("cc1-7", 2.0, END)];
    assert_eq!(stalls(&events), (0, 0.0, 0.0));
}

/// A process that changes its name meanwhile, or whose name the trace knows only later.
#[test]
fn a_process_is_its_id() {
    let events = [
        ("<...>-7", 0.0, BEGIN),
        ("sh-7", 1.0, END),
        ("sh-7", 2.0, BEGIN),
        ("cc1-7", 5.0, END),
    ];
    assert_eq!(stalls(&events).0, 4000);
    assert_eq!(direct(&events).ends_without_begin, 0);
    let mut tables = Tables::default();
    let mut report = ReclaimReport::default();
    for (name, kind) in [
        ("sh", Kind::DirectReclaimBegin),
        ("cc1", Kind::DirectReclaimEnd),
    ] {
        let task = tables.task(name.as_bytes(), -1);
        report.event(&Event::new(kind, 0, 0, task), &tables);
    }
    let nobody = report.finish(&tables, Account::default(), RunContext::default());
    let pairs = nobody.pairs[Span::Direct as usize];
    assert_eq!((pairs.ends_without_begin, pairs.open_at_end), (1, 1));
}

/// Processes of one name: the script's `--ignore-pid` keeps the stalls of the last, and of those before
/// what lies behind its list.
#[test]
fn processes_of_one_name() {
    let events = [
        ("cc1-7", 0.0, BEGIN),
        ("cc1-7", 1.0, END),
        ("cc1-7", 2.0, BEGIN),
        ("cc1-7", 4.0, END),
        ("cc1-8", 5.0, BEGIN),
        ("cc1-8", 9.0, END),
    ];
    assert_eq!(stalls(&events), (7000, 7.0, 6.0));
    assert_eq!(ids(&events), ["ignore-pid"]);
    let text = lines(&events);
    let folded = summary(&text, true);
    assert_eq!(folded.processes.len(), 1);
    assert_eq!(folded.processes[0].direct_reclaims, 3);
}

/// A process that sleeps as kswapd and also reclaims directly: stalls hide times awake.
#[test]
fn stalls_hide_times_awake() {
    let events = [
        ("kswapd0-9", 0.0, WAKE),
        ("kswapd0-9", 1.0, SLEEP),
        ("kswapd0-9", 2.0, WAKE),
        ("kswapd0-9", 4.0, SLEEP),
        ("kswapd0-9", 5.0, BEGIN),
        ("kswapd0-9", 9.0, END),
    ];
    let script = summary(&lines(&events), false);
    let ms = |s: f64| (s * 1e6).round() / 1e3;
    assert_eq!((ms(script.stalled_s), ms(script.awake_s)), (4.0, 2.0));
    assert_eq!(figures(&lines(&events)).kswapd.awake_ns, 3_000_000);
}

#[test]
fn kswapd_wakes_and_is_woken_again() {
    let events = [
        ("kswapd0-9", 0.0, WAKE),
        ("kswapd0-9", 1.0, "kswapd_wake: nid=0 order=3"),
        ("kswapd0-9", 5.0, SLEEP),
    ];
    let figures = figures(&lines(&events));
    assert_eq!((figures.kswapd.wakeups, figures.kswapd.rewakeups), (1, 1));
    assert_eq!(figures.kswapd.awake_ns, 5_000_000);
    assert_eq!(figures.kswapd.rewakeups_by_order.get(&3), Some(&1));
    let script = summary(&lines(&events), false);
    assert_eq!(script.wakes, Some(1));
    assert_eq!(script.processes[0].rewakes, 1);
    assert_eq!(script.processes[0].rewakes_by_order[3], 1);
}

#[test]
fn kswapd_awake_at_start() {
    let scan =
        "lru_shrink_inactive: nid=0 nr_scanned=32 nr_reclaimed=8 priority=12 flags=RECLAIM_WB_ANON";
    let events = [
        ("kswapd0-9", 0.0, scan),
        ("kswapd0-9", 1.0, SLEEP),
        ("kswapd0-9", 2.0, WAKE),
        ("kswapd0-9", 3.0, SLEEP),
    ];
    let figures = figures(&lines(&events));
    let kswapd = &figures.kswapd;
    assert_eq!((kswapd.awake_at_start, kswapd.sleeps_without_wake), (1, 1));
    assert_eq!(kswapd.awake_ns, 1_000_000);
    let script = summary(&lines(&events), false);
    // From boot: 100.001 s, and the one millisecond.
    assert!(
        (script.awake_s - 100.002).abs() < 1e-6,
        "{}",
        script.awake_s
    );
    let expected = ["kswapd-awake-at-start", "kswapd-sleep-without-wake"];
    assert_eq!(ids(&events), expected);
}

#[test]
fn kswapd_awake_at_end() {
    let events = [
        ("kswapd0-9", 0.0, WAKE),
        ("kswapd0-9", 1.0, SLEEP),
        ("kswapd0-9", 2.0, WAKE),
        ("sh-1", 7.0, "wakeup_kswapd: nid=0 zid=0 order=0"),
    ];
    let figures = figures(&lines(&events));
    let kswapd = &figures.kswapd;
    assert_eq!((kswapd.awake_at_end, kswapd.open_ns), (1, 5_000_000));
    assert_eq!((kswapd.wakeups, kswapd.awake_ns), (2, 1_000_000));
    assert!((summary(&lines(&events), false).awake_s - 0.001).abs() < 1e-9);
    assert_eq!(ids(&events), ["kswapd-awake-at-end", "requests-of-others"]);
}

#[test]
fn totals_of_the_script_leave_others_out() {
    let request = "wakeup_kswapd: nid=0 zid=1 order=2";
    let events = [
        ("sh-1", 0.0, request),
        ("cc1-7", 0.5, request),
        ("cc1-7", 1.0, BEGIN),
        ("cc1-7", 2.0, END),
    ];
    let figures = figures(&lines(&events));
    assert_eq!(figures.requests, 2);
    assert_eq!(summary(&lines(&events), false).requests, 1);
    let order = figures.orders.iter().find(|o| o.order == 2);
    assert_eq!(order.map(|o| o.requests), Some(2));
}

#[test]
fn who_reclaims() {
    let shrink = |n| {
        format!(
            "lru_shrink_inactive: nid=0 nr_scanned={n} nr_reclaimed={n} priority=12 flags=RECLAIM_WB_FILE"
        )
    };
    let memcg_begin = "memcg_reclaim_begin: order=0 gfp_flags=GFP_KERNEL";
    let soft_begin = "memcg_softlimit_reclaim_begin: order=0 gfp_flags=GFP_KERNEL";
    let counts: Vec<String> = [1, 2, 4, 8, 16, 32].map(shrink).to_vec();
    let events = [
        ("kdamond.0-3", 0.0, counts[0].as_str()),
        ("cc1-7", 1.0, BEGIN),
        ("cc1-7", 1.1, soft_begin),
        ("cc1-7", 1.2, counts[1].as_str()),
        ("cc1-7", 1.3, "memcg_softlimit_reclaim_end: nr_reclaimed=2"),
        ("cc1-7", 2.0, END),
        ("cc1-7", 3.0, memcg_begin),
        ("cc1-7", 3.1, counts[2].as_str()),
        ("cc1-7", 4.0, "memcg_reclaim_end: nr_reclaimed=4"),
        ("kswapd1-9", 5.0, soft_begin),
        ("kswapd1-9", 5.1, counts[3].as_str()),
        (
            "kswapd1-9",
            5.2,
            "memcg_softlimit_reclaim_end: nr_reclaimed=8",
        ),
        ("kswapd_x-9", 6.0, counts[4].as_str()),
        ("cc1-7", 7.0, counts[5].as_str()),
    ];
    let figures = figures(&lines(&events));
    let scanned = Actor::ALL.map(|actor| figures.totals(actor).scanned);
    assert_eq!(scanned, [8, 2, 4, 1 + 16 + 32]);
    assert_eq!(figures.span(Span::MemcgSoftlimit).count(), 2);
    assert_eq!(figures.totals(Actor::Direct).freed, 32);
    assert_eq!(figures.totals(Actor::Memcg).freed, 4);
}

#[test]
fn memory_cgroups_and_orders() {
    let begin = |order: u32, id: u32| {
        format!("memcg_reclaim_begin: order={order} gfp_flags=GFP_KERNEL pid=7 memcg_id={id} ")
    };
    let end = "memcg_reclaim_end: nr_reclaimed=4 pid=7 memcg_id=5 ";
    let write =
        "write_folio: page=000000005f30d789 pfn=0xde69 flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC";
    let (five, nine) = (begin(0, 5), begin(3, 9));
    let events = [
        ("a-7", 0.0, five.as_str()),
        ("a-7", 0.5, write),
        ("a-7", 1.0, end),
        ("a-7", 2.0, nine.as_str()),
        ("a-7", 5.0, end),
    ];
    let figures = figures(&lines(&events));
    let ids: Vec<Option<u64>> = figures.memcgs.iter().map(|m| m.id).collect();
    assert_eq!(ids, [Some(5), Some(9)]);
    assert_eq!(figures.memcgs[0].pages.written, 1);
    assert_eq!(figures.memcgs[1].memcg.max_us, Some(3000));
    let orders: Vec<usize> = figures.orders.iter().map(|o| o.order).collect();
    assert_eq!(orders, [0, 3]);
    assert_eq!(figures.orders[0].memcg.sum_us, 1000);
}

#[test]
fn waits() {
    let events = [
        (
            "sh-1",
            100.0,
            "writeback_congestion_wait: usec_timeout=20000 usec_delayed=20000",
        ),
        (
            "sh-1",
            200.0,
            "writeback_congestion_wait: usec_timeout=100000 usec_delayed=4000",
        ),
        (
            "kswapd0-9",
            300.0,
            "writeback_congestion_wait: usec_timeout=100000 usec_delayed=100000",
        ),
        (
            "sh-1",
            400.0,
            "writeback_wait_iff_congested: usec_timeout=100000 usec_delayed=0",
        ),
        (
            "sh-1",
            500.0,
            "throttled: nid=0 usec_timeout=100000 usect_delayed=8000 reason=VMSCAN_THROTTLE_WRITEBACK",
        ),
    ];
    let figures = figures(&lines(&events));
    let waits = |number, time_us, full| Waits {
        number,
        time_us,
        full,
    };
    assert_eq!(figures.congestion[0], [waits(2, 24_000, 1), waits(1, 0, 0)]);
    assert_eq!(
        figures.congestion[1],
        [waits(1, 100_000, 1), waits(0, 0, 0)]
    );
    assert_eq!(figures.throttled[0][0], waits(1, 8000, 0));
    let spent: u64 = figures.slices.slices().iter().map(|s| s.throttled_ns).sum();
    // The first wait began before the trace: only what lies in it counts over time.
    assert_eq!(spent, 112_000_000);
}

/// ftrace had no name for a task in some lines: with its process id it is one task.
#[test]
fn a_task_without_a_name_is_the_one_with_its_process_id() {
    const SHRINK: &str = "lru_shrink_inactive: nid=0 zid=0 nr_scanned=32 nr_reclaimed=16 priority=12 flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC";
    let figures = figures(&lines(&[
        ("<...>-186", 0.0, BEGIN),
        ("<...>-187", 0.5, BEGIN),
        ("rl-186", 1.0, SHRINK),
        ("rl-186", 2.0, END),
        ("<...>-187", 2.5, END),
        ("rl-186", 3.0, BEGIN),
        ("<...>-186", 4.0, END),
        ("<...>-186", 5.0, BEGIN),
        ("sh-186", 6.0, END),
        ("<...>-49", 7.0, SHRINK),
        ("kswapd0-49", 8.0, SHRINK),
    ]));
    let found: Vec<_> = figures
        .processes
        .iter()
        .map(|p| (p.key(), p.direct_reclaims, p.stalled_us(), p.scanned))
        .collect();
    let expected = [
        ("rl-186", 3, 3000, 32),
        ("<...>-187", 1, 2000, 0),
        // It executed another program: whether it did, or its id was given away, the trace does not say.
        ("sh-186", 0, 1000, 0),
        ("kswapd0-49", 0, 0, 64),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(key, reclaims, us, pages)| ((*key).to_owned(), *reclaims, *us, *pages))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(figures.totals(Actor::Kswapd).scanned, 64);
    assert_eq!(figures.kswapd.awake_at_start, 1);
}

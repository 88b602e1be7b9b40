//! Recordings are files that anyone may have written: whatever they say is shown, and no more than that.

use lowmark_record::{
    CounterLog, Gauges, Outcome, Phase, Recording, RunInfo, System, TaskTimes, vmstat,
};
use lowmark_watch::lines;
use lowmark_watch::player::Player;
use lowmark_watch::screen::{View, draw};
use lowmark_watch::timeline::Timeline;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

/// Levels that mean something.
const LEVELS: [&str; 7] = [
    "nr_free_pages",
    "nr_inactive_anon",
    "nr_active_anon",
    "nr_slab_reclaimable",
    "nr_dirty",
    "nr_dirty_threshold",
    "nr_dirty_background_threshold",
];
/// Counters that mean something, and one that does not.
const COUNTERS: [&str; 9] = [
    "pgscan_kswapd",
    "pgscan_direct_dma",
    "pgscan_anon",
    "pgscan_file",
    "pgsteal_kswapd",
    "workingset_refault_anon",
    "workingset_refault_file",
    "allocstall_normal",
    "something",
];
const ZONES: [&str; 6] = [
    "0/DMA32/free",
    "0/DMA32/min",
    "0/DMA32/low",
    "0/DMA32/high",
    "0/DMA32/boost",
    "0/DMA32/managed",
];

fn value() -> impl Strategy<Value = u64> {
    prop_oneof![0..10_000_u64, any::<u64>(), Just(u64::MAX), Just(0)]
}

/// Rows whose times go forward and back, and which are shorter or longer than the names.
fn rows(names: &'static [&'static str]) -> impl Strategy<Value = Gauges> {
    let row = (value(), prop::collection::vec(value(), 0..names.len() + 2));
    prop::collection::vec(row, 0..12).prop_map(move |samples| Gauges {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        samples,
    })
}

fn log(file: &'static str, names: &'static [&'static str]) -> impl Strategy<Value = CounterLog> {
    rows(names).prop_map(move |rows| CounterLog::of(file, &rows))
}

fn history() -> impl Strategy<Value = Vec<CounterLog>> {
    let logs = (
        log("proc/zoneinfo", &ZONES),
        log("proc/meminfo", &["MemTotal", "SwapTotal", "SwapFree"]),
        log("proc/pressure/memory", &["some", "full"]),
        log("sys/fs/cgroup/a", &["memory.current", "memory.max"]),
        log("proc/7/stat", &["state", "rss", "majflt", "utime", "stime"]),
        0..3_u32,
    );
    logs.prop_map(|(zones, sizes, waits, group, mut task, index)| {
        task.task = Some(index);
        vec![zones, sizes, waits, group, task]
    })
}

fn recording(state: Gauges, counters: Gauges, history: Vec<CounterLog>, real: bool) -> Recording {
    let task = TaskTimes {
        name: "task".into(),
        pid: 7,
        kthread: false,
        user_ns: 0,
        system_ns: 0,
        start_ns: 0,
        end_ns: None,
    };
    let mut recording = Recording {
        run: RunInfo {
            workload: "any".into(),
            params: Vec::new(),
            machine: "any".into(),
            kernel: "any".into(),
            backend: "host".into(),
            lowmark: "0".into(),
            seed: 0,
            left_out: Vec::new(),
        },
        outcome: Outcome::Completed,
        not_modelled: Vec::new(),
        elapsed_ns: u64::MAX,
        counters: Default::default(),
        state: Default::default(),
        tasks: vec![task.clone(), task],
        phases: vec![Phase {
            label: "phase".into(),
            task: "task".into(),
            time_ns: u64::MAX / 2,
        }],
        series: Vec::new(),
        gauges: state,
        history: Vec::new(),
        system: None,
        events: Default::default(),
    };
    if real {
        recording.system = Some(Box::new(System {
            vmstat: counters,
            history,
            ..System::default()
        }));
    } else {
        recording.history = history;
        let log = CounterLog::of(vmstat::FILE, &counters);
        recording.history.push(log);
    }
    recording
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_recording_is_shown(
        state in rows(&LEVELS),
        counters in rows(&COUNTERS),
        history in history(),
        real in any::<bool>(),
        places in prop::collection::vec(-1.0..1.0_f64, 1..4),
    ) {
        let timeline = Timeline::of(&recording(state, counters, history, real));
        let times: Vec<u64> = timeline.looks().map(|look| look.time_ns).collect();
        prop_assert!(times.is_sorted_by(|a, b| a < b));
        for (look, rates) in lines::spaced(&timeline, 1) {
            prop_assert!(!lines::line(look, &rates).is_empty());
            prop_assert!(lines::json(look, &rates).contains("says"));
        }
        let Some(span) = timeline.span() else {
            return Ok(());
        };
        let mut player = Player::of_recording(span);
        let mut terminal = Terminal::new(TestBackend::new(100, 30)).expect("a terminal");
        for (place, tasks) in places.into_iter().zip([false, true].into_iter().cycle()) {
            player.seek(place);
            player.pass(1_000_000);
            let view = View { title: "any", timeline: &timeline, player: &player, tasks, colour: true };
            terminal.draw(|frame| draw(frame, &view)).expect("drawn");
        }
    }
}

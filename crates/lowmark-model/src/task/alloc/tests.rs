//! Blocks that are held, processes that come and go, and what reclaim does for blocks.

use crate::{Options, run};
use lowmark_record::event::RECLAIM_WB_SYNC;
use lowmark_record::{Event, Field, Kind, Outcome, Recording};
use lowmark_spec::{BuiltIn, Overrides, Source, parse};
use std::collections::BTreeMap;

/// A run on 64 MB with a disk for swap and files; what holds between events is checked now and then.
fn recorded(kernel: &str, sections: &str) -> Recording {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "blocks"
[machine]
ram = "64M"
cpus = 2
occupied = "2M"
device.sda = {{ kind = "hdd", size = "20GB", position_read = "2ms", position_write = "1ms",
  command_read = "62us", command_write = "0ns", rate = "100MB/s" }}
swap = {{ device = "sda", start = "10GB", size = "128M" }}
filesystem.data = {{ kind = "ext4", device = "sda" }}
[kernel]
use = "{kernel}"
{sections}
"#
    );
    let source = Source {
        name: "blocks.toml".into(),
        text,
    };
    let scenarios = parse(&source, &BuiltIn, &Overrides::default());
    let scenario = &scenarios.unwrap_or_else(|error| panic!("{}", error.render_plain()))[0];
    let options = Options {
        events: true,
        check_every: 500,
    };
    let recording = run(scenario, &options, &mut |_| {}).expect("the model has all of it");
    assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    recording
}

fn samples(recording: &Recording, name: &str) -> Vec<(u64, u64)> {
    let mut series = recording.series.iter();
    let found = series.find(|series| series.name == name);
    found
        .map(|series| series.samples.clone())
        .unwrap_or_default()
}

/// What is held cannot be had again, and all of it can when it was given back. Nothing is lost on the way.
#[test]
fn what_is_held_is_out_of_reach_until_it_is_given_back() {
    let pass = r#"{ alloc = "a", order = 9, gfp = "hugetlb", count = 40, pace = "10ms", series = "pass" }"#;
    let text = format!(
        "[task.main]\nrun = [{pass}, {{ phase = \"full\" }}, {pass}, {{ free = \"a\" }}, {{ phase = \"again\" }}, {pass}]"
    );
    for kernel in ["v2.6.36", "v3.3", "v4.4", "v6.1"] {
        let recording = recorded(kernel, &text);
        let of = |from: u64, to: u64, name: &str| {
            let all = samples(&recording, name);
            all.iter().filter(|&&(at, _)| from < at && at <= to).count()
        };
        let at = |phase: &str| {
            let mut phases = recording.phases.iter();
            phases
                .find(|mark| mark.label == phase)
                .expect("a mark")
                .time_ns
        };
        let (full, again) = (at("full"), at("again"));
        let got = [(0, full), (full, again), (again, u64::MAX)].map(|(from, to)| {
            let (got, failed) = (of(from, to, "pass"), of(from, to, "pass-failed"));
            assert_eq!(got + failed, 40, "{kernel}");
            got
        });
        // 62 MB are 31 pageblocks; some have pages of the kernel's.
        assert!((20..=31).contains(&got[0]), "{kernel}: {got:?}");
        assert!(got[1] <= 1, "{kernel}: {got:?}");
        assert!(got[2].abs_diff(got[0]) <= 1, "{kernel}: {got:?}");
        // An attempt begins 10 ms after the one before, or later.
        let mut ends: Vec<(u64, u64)> = samples(&recording, "pass");
        ends.extend(samples(&recording, "pass-failed"));
        ends.sort_unstable();
        let begins: Vec<u64> = ends.iter().take(40).map(|(end, took)| end - took).collect();
        assert!(begins.windows(2).all(|two| two[1] - two[0] >= 10_000_000));
        let idle = recorded(kernel, "[task.main]\nrun = [{ sleep = \"1s\" }]");
        let free = |recording: &Recording| recording.state["nr_free_pages"];
        // From 5.13 on each of the two CPUs takes two pageblocks at once, and may have one left on its list.
        let on_lists = if kernel == "v6.1" { 62 + 2 * 512 } else { 62 };
        assert!(
            free(&recording).abs_diff(free(&idle)) <= on_lists,
            "{kernel}: but for lists of CPUs all is free again"
        );
    }
}

/// A task that waits busily has a CPU until the next attempt, and its share of one beside others.
#[test]
fn a_task_that_waits_busily_uses_the_processor() {
    let attempts = |busy: bool| {
        format!("{{ alloc = \"a\", order = 0, count = 11, pace = \"100ms\", busy = {busy} }}")
    };
    let system = |recording: &Recording| {
        let mut tasks = recording.tasks.iter();
        let main = tasks.find(|task| task.name == "main").expect("the task");
        main.system_ns
    };
    let alone = |busy| recorded("v3.3", &format!("[task.main]\nrun = [{}]", attempts(busy)));
    assert!((1_000_000_000..1_010_000_000).contains(&system(&alone(true))));
    assert!(system(&alone(false)) < 1_000_000);
    // Three others on two CPUs: the task has half of one, and keeps its pace all the same.
    let beside = format!(
        "[task.other]\nprocesses = 3\nrun = [{{ burn = \"2s\" }}]\n[task.main]\nrun = [{}, {{ phase = \"done\" }}]",
        attempts(true)
    );
    let recording = recorded("v3.3", &beside);
    assert!((400_000_000..700_000_000).contains(&system(&recording)));
    assert!((1_000_000_000..1_100_000_000).contains(&recording.phases[0].time_ns));
}

/// The first attempt that fails takes longer than its limit. Those that are not made count as failed.
#[test]
fn attempts_end_with_one_that_takes_too_long() {
    let text = r#"
[task.main]
run = [{ alloc = "a", order = 9, gfp = "thp", count = 1000, pace = "1ms", give_up_fail = "1ns", series = "pass" }]
"#;
    let recording = recorded("v4.4", text);
    let (got, failed) = (
        samples(&recording, "pass"),
        samples(&recording, "pass-failed"),
    );
    assert!(got.len() >= 20, "{} blocks", got.len());
    assert_eq!(got.len() + failed.len(), 1000);
    let (end, took) = failed[0];
    assert!(took > 1 && end > got.last().expect("a block").0);
    assert!(failed[1..].iter().all(|&sample| sample == (end, 0)));
}

/// Anonymous memory is everywhere and used again and again while blocks are asked for.
const PRESSURE: &str = r#"
[file.read]
size = "40M"
[task.anon]
run = [
  { map = "m", kind = "anon-private", size = "50M" },
  { touch = "m", access = "write" },
  { repeat = "forever", do = [
    { touch = "m", access = "write", order = "random", count = 500 },
    { read = "read", count = 10 },
    { sleep = "5ms" },
  ] },
]
[task.main]
run = [
  { sleep = "2s" },
  { alloc = "a", order = 6, gfp = "hugetlb", count = 40, pace = "20ms", series = "pass" },
  { free = "a" },
  { kill = "anon" },
]
"#;

struct Figures {
    success: usize,
    contig: Option<u64>,
    sync_writes: usize,
    waits_of_100_ms: usize,
    /// How often one page of a batch was written by a reclaimer that waits.
    writes_of_a_page: usize,
}

/// The most sync writes of one page of a batch of the task with this index.
fn writes_of_a_page(recording: &Recording, task: u32) -> usize {
    let (mut most, mut batch) = (0, BTreeMap::new());
    for event in recording.events.iter().filter(|event| event.task == task) {
        match event.kind {
            Kind::LruIsolate => batch.clear(),
            Kind::Writepage if is_sync(&event) => {
                let writes = batch.entry(event.get(Field::Pfn)).or_insert(0);
                *writes += 1;
                most = most.max(*writes);
            }
            _ => {}
        }
    }
    most
}

fn is_sync(event: &Event) -> bool {
    let flags = event.get(Field::Flags);
    flags.is_some_and(|flags| flags & RECLAIM_WB_SYNC != 0)
}

fn under_pressure(kernel: &str) -> Figures {
    let recording = recorded(kernel, PRESSURE);
    let events: Vec<_> = recording.events.iter().collect();
    let of = |kind: Kind| events.iter().filter(move |event| event.kind == kind);
    let main = recording.tasks.iter().find(|task| task.name == "main");
    let main = main.expect("the task").pid;
    let contig = of(Kind::LruIsolate).map(|event| event.get(Field::ContigTaken));
    Figures {
        success: samples(&recording, "pass").len(),
        contig: contig.sum(),
        sync_writes: of(Kind::Writepage).filter(|event| is_sync(event)).count(),
        writes_of_a_page: writes_of_a_page(&recording, main - 1),
        waits_of_100_ms: of(Kind::CongestionWait)
            .filter(|event| {
                event.task + 1 == main && event.get(Field::UsecTimeout) == Some(100_000)
            })
            .count(),
    }
}

/// Lumpy reclaim of 2.6.36 waits for congestion and for each page that it writes; one that gives up early does so for fewer,
/// and for no congestion. From 3.5 on there is nothing of it.
#[test]
fn lumpy_reclaim_waits_for_its_pages_and_gives_up_from_2_6_37_on() {
    let before = under_pressure(
        "v2.6.37-wait-iff-congested,-sync-lumpy-at-once,-lowlumpy,-stop-neighbour-search,\
         model.compaction=off",
    );
    assert!(before.contig > Some(0));
    assert!(before.sync_writes > 0, "pages are waited for");
    assert!(before.waits_of_100_ms > 0, "and congestion before");
    // A page under writeback stays locked while it is waited for, and one that is wanted again after its write is kept.
    assert_eq!(before.writes_of_a_page, 1);
    let lowlumpy = under_pressure("v2.6.37-wait-iff-congested,model.compaction=off");
    assert!(lowlumpy.contig > Some(0));
    assert!(
        lowlumpy.waits_of_100_ms < before.waits_of_100_ms,
        "{} of {} waits, {} and {} writes",
        lowlumpy.waits_of_100_ms,
        before.waits_of_100_ms,
        lowlumpy.sync_writes,
        before.sync_writes
    );
    for figures in [&before, &lowlumpy] {
        assert!(figures.success > 0);
    }
    let removed = under_pressure("v3.5");
    assert_eq!((removed.contig, removed.sync_writes), (None, 0));
}

/// Processes of a build have what the kernel gives a process, and leave nothing behind. Their times are their parent's.
#[test]
fn processes_of_a_build_leave_nothing_behind() {
    let text = r#"
[fileset.tree]
files = 30
size = "12K"
[fileset.object]
files = 30
size = "8K"
exists = false
[task.make]
run = [
  { build = 20, do = [
    { map = "heap", kind = "anon-private", size = "2M" },
    { repeat = 3, do = [{ read = "tree", pick = "random" }] },
    { touch = "heap", access = "write" },
    { burn = "5ms" },
    { write = "object" },
  ] },
]
[task.other]
run = [{ build = "forever", do = [{ map = "heap", kind = "anon-private", size = "1M" }, { touch = "heap", access = "write" }, { burn = "1ms" }] }]
[task.end]
run = [{ wait = "make" }, { kill = "other" }]
"#;
    for kernel in [
        "v2.6.36",
        "v3.16,model.page_tables=on",
        "v6.1,model.metadata=off",
    ] {
        let recording = recorded(kernel, text);
        // Processes of which there are events stand behind the tasks, without times.
        let (processes, tasks): (Vec<_>, Vec<_>) = recording
            .tasks
            .iter()
            .filter(|task| !task.kthread)
            .partition(|task| task.user_ns + task.system_ns == 0);
        let names: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
        assert_eq!(names, ["make", "other", "end"], "{kernel}");
        assert!(processes.iter().all(|task| task.name != "end"));
        let make = recording.tasks.iter().find(|task| task.name == "make");
        // 20 times 5 ms, and what touches take.
        assert!(
            (100_000_000..200_000_000).contains(&make.expect("it").user_ns),
            "{kernel}"
        );
        let files = recording.state["nr_inactive_file"] + recording.state["nr_active_file"];
        let anon = recording.state["nr_inactive_anon"] + recording.state["nr_active_anon"];
        assert_eq!(anon, 0, "{kernel}");
        // 30 sources of three pages, 20 objects of two.
        assert!((40..=130).contains(&files), "{kernel}: {files}");
    }
}

/// Events of processes that have ended are those of tasks of the recording, which has each such process once, without times.
#[test]
fn events_of_a_build_have_tasks_of_the_recording() {
    let text = r#"
[task.make]
run = [
  { build = 2, do = [
    { map = "heap", kind = "anon-private", size = "64M" },
    { touch = "heap", access = "write" },
  ] },
]
"#;
    let recording = recorded("v6.1", text);
    let direct = recording
        .events
        .iter()
        .filter(|event| event.kind == Kind::DirectReclaimBegin)
        .map(|event| event.task as usize);
    let mut tasks: Vec<usize> = direct.collect();
    tasks.sort_unstable();
    tasks.dedup();
    let processes: Vec<&lowmark_record::TaskTimes> = tasks
        .iter()
        .map(|&task| &recording.tasks[task])
        .filter(|task| task.name == "make" && task.user_ns == 0)
        .collect();
    assert!(!processes.is_empty(), "they reclaimed");
    assert!(
        processes
            .iter()
            .all(|task| task.end_ns > Some(task.start_ns))
    );
    let mut pids: Vec<u32> = recording.tasks.iter().map(|task| task.pid).collect();
    pids.sort_unstable();
    assert!(pids.windows(2).all(|two| two[0] < two[1]), "{pids:?}");
    let kswapd = |event: &lowmark_record::Event| {
        let task = &recording.tasks[event.task as usize];
        event.kind != Kind::KswapdWake || task.name == "kswapd0"
    };
    assert!(recording.events.iter().all(|event| kswapd(&event)));
}

/// Huge pages that lie where a block is reclaimed are taken as a whole, and go to swap page by page: the lists and their
/// sizes agree afterwards, and all of it can be had.
#[test]
fn huge_pages_give_way_to_blocks() {
    let text = r#"
[task.idle]
run = [
  { map = "m", kind = "anon-private", size = "24M" }, { touch = "m", access = "write" }, { barrier = "ready" },
  { barrier = "done" },
]
[task.main]
run = [
  { barrier = "ready" },
  { alloc = "a", order = 9, gfp = "movable", count = 60, pace = "50ms", series = "pass" },
  { barrier = "done" },
]
[barrier.ready]
[barrier.done]
"#;
    for kernel in ["v3.3", "v3.4", "v4.4", "v4.12"] {
        let recording = recorded(&format!("{kernel},thp.enabled=always"), text);
        assert!(recording.counters["thp_fault_alloc"] >= 8, "{kernel}");
        assert!(recording.counters["pswpout"] > 512, "{kernel}");
        assert!(samples(&recording, "pass").len() > 18, "{kernel}");
    }
}

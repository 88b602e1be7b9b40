//! The runner on this very machine: small workloads, all statements that take no privilege.

use lowmark_real::protocol::{Job, Mount};
use lowmark_real::runner::{Line, READY};
use lowmark_spec::{BuiltIn, Overrides, Scenario, Source, parse};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const HEAD: &str = r#"
lowmark = 1
[workload]
name = "w"
END
[machine]
use = "small-512m-ssd"
[kernel]
use = "v6.18"
"#;

fn scenario(end: &str, text: &str) -> Scenario {
    let source = Source {
        name: "w.toml".into(),
        text: format!("{}{text}", HEAD.replace("END", end)),
    };
    let scenarios = parse(&source, &BuiltIn, &Overrides::default());
    let scenarios = scenarios.unwrap_or_else(|error| panic!("{}", error.render_plain()));
    scenarios.into_iter().next().expect("one run")
}

/// Runs a workload in a directory; its lines, and whether it exited well.
fn run_in(directory: &Path, end: &str, text: &str) -> (Vec<Line>, bool) {
    let job = Job {
        scenario: scenario(end, text),
        modules: Vec::new(),
        swap: Vec::new(),
        mounts: vec![Mount {
            noatime: true,
            name: "data".into(),
            point: directory.join("data"),
            serial: None,
            kind: "tmpfs".into(),
            bdi: Vec::new(),
            elevator: Vec::new(),
        }],
        settings: Vec::new(),
        events: Vec::new(),
        buffer_kb: 0,
        interval_ms: 0,
        touches: false,
        cgroups: lowmark_real::protocol::CGROUPS.into(),
    };
    let path = directory.join("job");
    std::fs::write(&path, serde_json::to_vec(&job).expect("JSON")).expect("written");
    let mut child = Command::new(env!("CARGO_BIN_EXE_lowmark-runner"))
        .arg("run")
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the runner starts");
    // It says that it is ready before it waits, but the byte may come earlier.
    let _ = child.stdin.take().expect("piped").write_all(b"\n");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    let lines = text.lines().filter(|line| *line != READY);
    let lines =
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}")));
    (lines.collect(), output.status.success())
}

fn run(text: &str) -> (Vec<Line>, bool) {
    let directory = tempfile::tempdir().expect("a directory");
    run_in(directory.path(), "", text)
}

fn tasks(lines: &[Line]) -> Vec<usize> {
    let tasks = lines.iter().filter_map(|line| match line {
        Line::Task { task, .. } => Some(*task),
        _ => None,
    });
    tasks.collect()
}

fn samples(lines: &[Line]) -> Vec<(u64, u64)> {
    let batches = lines.iter().filter_map(|line| match line {
        Line::Samples { samples, .. } => Some(samples.iter().map(|(s, _, value)| (*s, *value))),
        _ => None,
    });
    batches.flatten().collect()
}

#[test]
fn memory_is_mapped_touched_and_verified() {
    let (lines, ok) = run(r#"
[task.main]
run = [
  { phase = "one" },
  { map = "a", kind = "anon-private", size = "1M", advice = "nohugepage" },
  { touch = "a", access = "write", order = "zipf(0.9)", count = 1000 },
  { memset = "a", offset = "8K", length = "64K" },
  { touch = "a", access = "verify", passes = 2 },
  { map = "s", kind = "anon-shared", size = "1M" },
  { touch = "s", access = "write", order = "reverse" },
  { punch = "s", length = "4K", every = "64K" },
  { touch = "s", access = "verify" },
  { parallel = [[{ touch = "s", access = "read" }], [{ burn = "2ms" }, { sleep = "1ms" }]] },
  { advise = "a", advice = "dontneed" },
  { sample = "fault", do = [{ probe = "a", what = "resident" }] },
  { sample = "fault", do = [{ touch = "a", access = "write", length = "4K" }, { probe = "a", what = "resident" }] },
  { repeat = 200, do = [{ sample = "plain", do = [{ touch = "a", access = "read", count = 1 }] }] },
  { unmap = "a", length = "4K", every = "8K" },
  { unmap = "s" },
]
"#);
    assert!(ok, "{lines:?}");
    assert!(matches!(lines[0], Line::Start { .. }));
    assert!(matches!(lines.last(), Some(Line::End { .. })));
    assert!(
        lines
            .iter()
            .any(|line| matches!(line, Line::Phase { phase: 0, .. }))
    );
    let series: Vec<u64> = samples(&lines)
        .into_iter()
        .map(|(series, _)| series)
        .collect();
    assert_eq!(series.len(), 202);
    // The answers of the probe: absent, then resident.
    assert_eq!(series[..2], [3, 4]);
    assert_eq!(series[2], 5);
    assert_eq!(tasks(&lines), [0]);
}

#[test]
fn files_are_written_read_and_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (lines, ok) = run_in(
        directory.path(),
        "",
        r#"
[file.data]
kind = "random"
size = "300K"
[file.out]
size = "200K"
exists = false
[file.hidden]
kind = "sparse"
size = "1M"
unlinked = true
[fileset.tree]
directories = 2
files = 3
size = { uniform = ["1K", "9K"] }
exists = false
[task.main]
run = [
  { read = "data", block = "64K" },
  { read = "data", block = "4K", order = "random", count = 20, rate = "10M/s" },
  { write = "out", block = "64K" },
  { fsync = "out" },
  { append = "out", block = "1K", count = 3 },
  { fdatasync = "out" },
  { sync_range = "out", length = "4K" },
  { copy = "data", to = "out", block = "64K" },
  { map = "f", kind = "file-shared", file = "data", size = "300K" },
  { touch = "f", access = "read" },
  { map = "h", kind = "file-shared", file = "hidden", size = "1M", advice = "random" },
  { touch = "h", access = "write" },
  { repeat = 6, do = [{ write = "tree", block = "4K" }] },
  { stat_walk = "tree" },
  { delete = "tree" },
  { delete = "tree", pick = "random" },
]
"#,
    );
    assert!(ok, "{lines:?}");
    let data = directory.path().join("data");
    let size = |name: &str| std::fs::metadata(data.join(name)).expect(name).len();
    assert_eq!((size("data"), size("out")), (300 << 10, 300 << 10));
    assert!(!data.join("hidden").exists());
    let in_tree = |directory: &str| {
        let entries = std::fs::read_dir(data.join("tree").join(directory));
        entries.expect("a directory").count()
    };
    assert!((4..=5).contains(&(in_tree("d0") + in_tree("d1"))));
}

#[test]
fn tasks_meet_spawn_wait_and_kill() {
    let (lines, ok) = run(r#"
[barrier.all]
[task.main]
run = [
  { barrier = "all" },
  { spawn = "extra", count = 2 },
  { wait = "extra" },
  { spawn = "extra" },
  { wait = "extra" },
  { kill = "endless" },
  { wait = "endless" },
]
[task.pool]
threads = 3
run = [
  { map = "m", kind = "anon-private", size = "64K" },
  { touch = "m", access = "write" },
  { barrier = "all" },
]
[task.extra]
processes = 3
start = "spawned"
run = [{ burn = "1ms" }]
[task.endless]
processes = 2
run = [
  { repeat = "forever", do = [{ sample = "nap", do = [{ sleep = "1ms" }] }] },
]
"#);
    assert!(ok, "{lines:?}");
    let mut tasks = tasks(&lines);
    tasks.sort_unstable();
    assert_eq!(tasks, [0, 1, 1, 1, 2, 2, 2, 3, 3]);
    // What a killed process had kept is not lost.
    assert!(!samples(&lines).is_empty());
}

#[test]
fn the_end_by_time_kills_what_still_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let end = r#"end = { after = "200ms" }"#;
    let text =
        "[task.main]\nthreads = 2\nrun = [{ repeat = \"forever\", do = [{ burn = \"1ms\" }] }]\n";
    let (lines, ok) = run_in(directory.path(), end, text);
    assert!(ok, "{lines:?}");
    let times = |wanted: fn(&Line) -> Option<u64>| lines.iter().find_map(wanted).expect("a line");
    let start = times(|line| match line {
        Line::Start { time_ns } => Some(*time_ns),
        _ => None,
    });
    let end = times(|line| match line {
        Line::End { time_ns } => Some(*time_ns),
        _ => None,
    });
    assert!(end - start >= 200_000_000, "{}", end - start);
}

#[test]
fn a_statement_that_fails_ends_the_run_and_says_which() {
    let (lines, ok) = run(r#"
[file.none]
exists = false
size = "4K"
[task.main]
run = [{ sleep = "1ms" }, { read = "none" }]
[task.other]
run = [{ sleep = "1h" }]
"#);
    assert!(!ok);
    let fault = lines.iter().find_map(|line| match line {
        Line::Fault {
            task,
            line,
            problem,
        } => Some((*task, *line, problem.clone())),
        _ => None,
    });
    let (task, line, problem) = fault.expect("a fault");
    assert_eq!((task, line), (0, 15));
    assert!(
        problem.starts_with("read: ") && problem.contains("No such file"),
        "{problem}"
    );
}

#[test]
fn a_touch_of_what_is_unmapped_dies() {
    let (lines, ok) = run(r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "64K" },
  { unmap = "m", offset = "4K", length = "4K" },
  { touch = "m", access = "write" },
]
"#);
    assert!(!ok);
    assert!(
        lines
            .iter()
            .any(|line| matches!(line, Line::Died { signal: 11, .. })),
        "{lines:?}"
    );
}

/// Each process of a build has maps of its own and ends before the next one begins; those of the instance stay. One that fails
/// ends the run.
#[test]
fn a_build_forks_one_process_after_the_other() {
    let (lines, ok) = run(r#"
[file.out]
size = "64K"
exists = false
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "64K" },
  { touch = "m", access = "write" },
  { build = 3, do = [
    { map = "m", kind = "anon-private", size = "1M" },
    { sample = "process", do = [{ touch = "m", access = "write" }, { burn = "5ms" }] },
    { append = "out", block = "4K" },
  ] },
  { touch = "m", access = "verify" },
]
"#);
    assert!(ok, "{lines:?}");
    let found = samples(&lines);
    assert_eq!(found.len(), 3);
    assert!(
        found.iter().all(|&(_, took)| took >= 5_000_000),
        "{found:?}"
    );
    assert_eq!(tasks(&lines), [0]);
    // What the kernel calls user time and what it does not is by ticks; together they are exact.
    let used = lines.iter().find_map(|line| match line {
        Line::Task {
            user_ns, system_ns, ..
        } => Some(user_ns + system_ns),
        _ => None,
    });
    assert!(
        used >= Some(15_000_000),
        "the instance has the times of its processes: {used:?}"
    );

    let (lines, ok) = run(r#"
[file.data]
size = "64K"
[task.main]
run = [
  { build = 3, do = [
    { map = "f", kind = "file-shared", file = "data" },
    { truncate = "data" },
    { touch = "f", access = "read" },
  ] },
]
"#);
    assert!(!ok);
    let faults = lines.iter().filter(|line| matches!(line, Line::Fault { problem, .. } if problem.contains("killed by signal 7")));
    assert_eq!(faults.count(), 1, "{lines:?}");
}

#[test]
fn what_it_cannot_do_has_its_name() {
    let scenario = scenario(
        "",
        r#"
[task.main]
threads = 2
run = [
  { alloc = "a", order = 3, gfp = "hugetlb" },
  { alloc = "a", order = 9, gfp = "thp" },
  { build = 2, do = [{ burn = "1ms" }] },
  { repeat = 2, do = [{ stop_self = true }] },
]
[task.other]
run = [{ resume = "main" }]
"#,
    );
    let found: Vec<String> = lowmark_real::runner::unsupported(&scenario.workload)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        found,
        [
            "alloc of order 3 (task main, line 14)",
            "alloc with flags other than gfp = \"hugetlb\" (task main, line 15)",
            "build in threads (task main, line 16)",
            "stop_self in threads (task main, line 17)"
        ]
    );
}

#[test]
fn a_job_comes_back_as_it_was() {
    let scenario = scenario("", "[task.main]\nrun = [{ sleep = \"1ms\" }]\n");
    let text = serde_json::to_string(&scenario).expect("JSON");
    assert_eq!(
        serde_json::from_str::<Scenario>(&text).expect("JSON"),
        scenario
    );
}

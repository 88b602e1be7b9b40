//! The same pages in the same order: the model and the runner carry out one workload, and every thread must
//! have come to the same pages.

use lowmark_real::protocol::Job;
use lowmark_real::runner::Line;
use lowmark_spec::visit::Touched;
use lowmark_spec::{BuiltIn, Overrides, Scenario, Source, parse};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

const WORKLOAD: &str = r#"
lowmark = 1
[workload]
name = "orders"
[for]
order = ["seq", "reverse", "random", "zipf(0.99)", "stride(7)", "gauss(0.1)"]
[machine]
use = "small-512m-ssd"
ram = "64M"
reserved = "4M"
occupied = "1M"
[kernel]
use = "v3.6"
[task.alone]
run = [
  { map = "m", kind = "anon-private", size = "1000p" },
  { touch = "m", access = "write", order = "$order", passes = 2 },
  { touch = "m", access = "read", order = "$order", count = 777, offset = "10p", length = "333p" },
  { touch = "m", access = "read", order = "$order", step = "1000", offset = "100", length = "40000" },
  { parallel = [
    [{ touch = "m", access = "read", order = "$order", count = 200 }],
    [{ touch = "m", access = "write", order = "$order", count = 300 }],
  ] },
  { touch = "m", access = "read", order = "$order", count = 50, rate = "100000/s" },
]
[task.shared]
threads = 3
run = [
  { map = "s", kind = "anon-shared", size = "100p + idx*10p" },
  { repeat = 3, do = [{ touch = "s", access = "write", order = "$order", count = 150 }] },
]
[task.holes]
run = [
  { map = "m", kind = "anon-private", size = "5M" },
  { touch = "m", access = "write", order = "$order", count = 900 },
  { unmap = "m", offset = "1M", length = "512K", every = "2M" },
  { advise = "m", advice = "dontneed", offset = "1536K", length = "1M" },
  { repeat = 2, index = "i", do = [
    { touch = "m", access = "verify", order = "$order", count = 400, offset = "i*2M + 1536K", length = "1536K" },
  ] },
  { sample = "fault", do = [
    { touch = "m", access = "write", length = "1M" },
    { probe = "m", offset = "64p", what = "resident" },
  ] },
  { unmap = "m", length = "1M" },
  { advise = "m", advice = "random", offset = "4M" },
  { touch = "m", access = "read", order = "$order", passes = 2, offset = "3584K" },
]
[task.many]
processes = 2
run = [
  { map = "m", kind = "anon-private", size = "64p" },
  { touch = "m", access = "write", order = "$order", passes = 3 },
]
"#;

fn scenarios() -> Vec<Scenario> {
    let source = Source {
        name: "orders.toml".into(),
        text: WORKLOAD.into(),
    };
    let overrides = Overrides {
        seed: Some(42),
        ..Overrides::default()
    };
    parse(&source, &BuiltIn, &overrides).unwrap_or_else(|error| panic!("{}", error.render_plain()))
}

/// Pages by task, instance and thread.
type Pages = BTreeMap<(usize, usize, u64), Vec<u64>>;

fn on_the_model(scenario: &Scenario) -> Pages {
    let mut pages = Pages::new();
    for touched in lowmark_model::touches(scenario).expect("the model can run it") {
        let Touched {
            task,
            instance,
            thread,
            page,
        } = touched;
        pages
            .entry((task, instance, thread))
            .or_default()
            .push(page);
    }
    pages
}

fn on_the_runner(scenario: &Scenario) -> Pages {
    let job = Job {
        scenario: scenario.clone(),
        modules: Vec::new(),
        swap: Vec::new(),
        mounts: Vec::new(),
        settings: Vec::new(),
        events: Vec::new(),
        buffer_kb: 0,
        interval_ms: 0,
        touches: true,
        cgroups: lowmark_real::protocol::CGROUPS.into(),
    };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("job");
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
    assert!(output.status.success());
    let mut pages = Pages::new();
    for line in String::from_utf8(output.stdout).expect("text").lines() {
        if let Ok(Line::Touches {
            task,
            instance,
            thread,
            pages: touched,
        }) = serde_json::from_str(line)
        {
            pages
                .entry((task, instance, thread))
                .or_default()
                .extend(touched);
        }
    }
    pages
}

#[test]
fn the_model_and_the_runner_touch_the_same_pages() {
    for scenario in scenarios() {
        let expected = on_the_model(&scenario);
        // One alone with two threads, three that share, one with holes, two processes.
        assert_eq!(expected.len(), 9, "{:?}", scenario.params);
        assert_eq!(expected[&(2, 0, 0)].len(), 900 + 2 * 400 + 256 + 2 * 384);
        assert_eq!(expected[&(0, 0, 0)].len(), 2000 + 777 + 40 + 50);
        assert_eq!(expected[&(0, 0, 2)].len(), 300);
        let found = on_the_runner(&scenario);
        assert!(found == expected, "{:?}: the pages differ", scenario.params);
    }
}

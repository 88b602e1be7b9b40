//! What varies in the events of real kernels varies in those of the model: captures of classic reclaim against runs of
//! the model under loads of their kinds.
//!
//! For every event that both have, a field that has two values in captures and only one in the model is a constant in the
//! model's text. It fails here, unless [`CONSTANT`] says why; what is said there has to stay true.

use lowmark_model::{Options, run};
use lowmark_record::{Event, Field, Kind, Outcome, Sink, Tables};
use lowmark_spec::{BuiltIn, Overrides, Source, parse};
use lowmark_trace::input::Input;
use lowmark_trace::read;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Fields that are constant in the model by what it leaves out.
const CONSTANT: &[(Kind, Field, &str)] = &[
    (
        Kind::LruShrinkActive,
        Field::NrActive,
        "executable mappings stay on the active list; workloads of the model map nothing to be executed",
    ),
    (
        Kind::LruShrinkActive,
        Field::NrReferenced,
        "the same: since 5.8 these are the pages that stay for that reason",
    ),
    (
        Kind::WriteFolio,
        Field::Page,
        "the model has no addresses of pages; they differ from boot to boot",
    ),
];

/// The loads: memory larger than RAM in order and at random, files read and mapped, writers at their dirty limit, and a
/// memory cgroup at its limit, many small files beside memory that needs their room, and huge pages for
/// which faults reclaim. The first one goes on after three seconds, as reclaim of 6.18 knows the lengths of lists as
/// they were up to two seconds ago.
const LOADS: [&str; 9] = [
    r#"[task.main]
run = [
  { map = "m", kind = "anon-private", size = "72M" },
  { touch = "m", access = "write" },
  { touch = "m", access = "write" },
  { map = "a", kind = "anon-private", size = "40M" },
  { touch = "a", access = "write", passes = 3 },
  { sleep = "3s" },
  { repeat = 6, do = [
    { touch = "a", access = "write", passes = 2 },
    { touch = "m", access = "write", order = "random", count = 1500 },
  ] },
]"#,
    r#"[task.main]
run = [
  { map = "m", kind = "anon-shared", size = "70M" },
  { touch = "m", access = "write" },
  { touch = "m", access = "write", order = "random", count = 20000 },
]"#,
    r#"[file.f]
fs = "data"
size = "120M"
[task.reader]
processes = 2
run = [{ read = "f", block = "64K", passes = 2 }]"#,
    r#"[file.hot]
fs = "data"
size = "36M"
[file.f]
fs = "data"
size = "60M"
[task.reader]
run = [{ read = "hot", block = "64K", passes = 2 }, { read = "f", block = "64K" }]"#,
    r#"[file.f]
fs = "data"
size = "90M"
[task.main]
run = [
  { map = "f", kind = "file-shared", file = "f" },
  { touch = "f", access = "read" },
  { touch = "f", access = "write", order = "random", count = 12000 },
]"#,
    r#"[kernel.sysctl]
dirty_bytes = 16777216
dirty_background_bytes = 4194304
[file.out]
fs = "slow"
exists = false
copies = 4
[file.other]
fs = "data"
exists = false
[task.writer]
processes = 4
run = [
  { append = "out$idx", block = "64K", count = 300 },
  { sleep = "7s" },
  { append = "out$idx", block = "64K", count = 20 },
]
[task.other]
run = [
  { sleep = "1s" },
  { append = "other", block = "64K", count = 100 },
  { sleep = "40s" },
]"#,
    r#"[cgroup.box]
max = "24M"
[file.f]
fs = "data"
size = "40M"
[task.main]
cgroup = "box"
run = [
  { map = "m", kind = "anon-private", size = "36M" },
  { touch = "m", access = "write" },
  { touch = "m", access = "write", order = "random", count = 20000 },
  { read = "f", block = "64K" },
]"#,
    r#"[fileset.s]
fs = "data"
files = 6000
size = "4K"
[task.main]
run = [
  { repeat = 6000, do = [{ read = "s" }] },
  { map = "m", kind = "anon-private", size = "60M" },
  { touch = "m", access = "write", passes = 2 },
  { repeat = 6000, do = [{ read = "s" }] },
]"#,
    r#"[kernel.sysctl]
"thp.enabled" = "always"
"thp.defrag" = "always"
# So slow that the disk keeps up. Otherwise all huge pages are under writeback, hence active, before counters of lists, which are two
# seconds old, know of one: reclaim makes none inactive, and memory runs out.
[machine.costs]
swap_huge_page = "2ms"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "70M", advice = "hugepage" },
  { touch = "m", access = "write", passes = 2 },
]"#,
];

/// The values of every field, up to two of each.
#[derive(Default)]
struct Values(BTreeMap<(&'static str, &'static str), Vec<u64>>);

impl Values {
    fn note(&mut self, event: &Event) {
        for (field, value) in event.fields() {
            let seen = self.0.entry((event.kind.name(), field.name())).or_default();
            if seen.len() < 2 && !seen.contains(&value) {
                seen.push(value);
            }
        }
    }

    fn varies(&self, field: (&'static str, &'static str)) -> Option<bool> {
        self.0.get(&field).map(|values| values.len() > 1)
    }
}

impl Sink for Values {
    fn event(&mut self, event: &Event, _: &Tables) {
        self.note(event);
    }
}

/// Captures of loads of the same kinds; of other list algorithms and of huge pages other fields vary.
fn captures() -> Values {
    let directory = std::env::var_os("LOWMARK_CAPTURES").expect(".cargo/config.toml sets it");
    let entries = std::fs::read_dir(directory).expect("the captures");
    let judged = |path: &PathBuf| {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        let load = ["-swap-", "-stream-", "-writers-", "-memcgv2-", "-simoop-"];
        name.ends_with(".trace.txt.xz")
            && load.iter().any(|kind| name.contains(kind))
            && !["mglru", "thp"].iter().any(|other| name.contains(other))
    };
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .filter(judged)
        .collect();
    paths.sort();
    assert!(paths.len() >= 4, "{paths:?}");
    let mut values = Values::default();
    for path in paths {
        let input = Input::open(&path).expect("opens");
        read(input, &mut values).expect("a trace");
    }
    values
}

/// What the model shows under the loads, as 6.18.
fn model() -> Values {
    let mut values = Values::default();
    for load in LOADS {
        let text = format!(
            r#"lowmark = 1
[workload]
name = "fields"
title = "fields"
[machine]
use = "small-512m-ssd"
ram = "64M"
occupied = "4M"
reserved = "2M"
[machine.device.slow]
kind = "ssd"
size = "4G"
position_read = "1ms"
position_write = "1ms"
command_read = "20us"
command_write = "20us"
rate = "20MB/s"
[machine.filesystem.slow]
kind = "ext4"
device = "slow"
[kernel]
use = "v6.18"
{load}
"#
        );
        let source = Source {
            name: "fields.toml".into(),
            text,
        };
        let scenarios = parse(&source, &BuiltIn, &Overrides::default());
        let scenarios = scenarios.unwrap_or_else(|error| panic!("{}", error.render_plain()));
        let options = Options {
            events: true,
            check_every: 0,
        };
        let recording = run(&scenarios[0], &options, &mut |_| {}).expect("the model can run it");
        assert_eq!(recording.outcome, Outcome::Completed, "{load}");
        recording
            .events
            .iter()
            .for_each(|event| values.note(&event));
    }
    values
}

#[test]
fn fields_that_vary_in_kernels_vary_in_the_model() {
    let (kernels, model) = (captures(), model());
    let excused = |field: &(&str, &str)| {
        let mut all = CONSTANT.iter();
        all.any(|(kind, name, _)| (kind.name(), name.name()) == *field)
    };
    let constant: Vec<_> = kernels
        .0
        .iter()
        .filter(|(_, values)| values.len() > 1)
        .map(|(field, _)| *field)
        .filter(|field| model.varies(*field) == Some(false) && !excused(field))
        .collect();
    assert!(constant.is_empty(), "constants of the model: {constant:#?}");
    // Enough is compared for that to mean something.
    let compared = kernels
        .0
        .keys()
        .filter(|field| model.varies(**field).is_some());
    let compared = compared.count();
    assert!(compared > 60, "{compared}");
    for (kind, field, reason) in CONSTANT {
        let field = (kind.name(), field.name());
        assert_eq!(
            model.varies(field),
            Some(false),
            "{field:?} is no longer excused by: {reason}"
        );
    }
}

//! Traces on the command line: real captures, the model's own events, and files that are no traces.

use crate::common::{Place, SMALL};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The captures of text, by path and name.
fn captures() -> Vec<(PathBuf, String)> {
    let directory = std::env::var_os("LOWMARK_CAPTURES").expect(".cargo/config.toml sets it");
    let entries = std::fs::read_dir(directory).expect("the captures");
    let mut captures: Vec<(PathBuf, String)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path
                .file_name()?
                .to_str()?
                .strip_suffix(".trace.txt.xz")?
                .to_owned();
            Some((path, name))
        })
        .collect();
    captures.sort();
    assert!(captures.len() >= 6, "{captures:?}");
    captures
}

fn toml(path: &Path) -> Option<toml::Table> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.parse().expect("TOML"))
}

fn sum(totals: &Value, key: &str) -> u64 {
    let actors = totals.as_object().expect("actors");
    actors
        .values()
        .filter_map(|actor| actor[key].as_u64())
        .sum()
}

#[test]
fn captures_are_accounted_for_to_the_last_line() {
    let place = Place::new();
    for (path, name) in captures() {
        let text = path.to_str().expect("UTF-8");
        let report = place.lowmark(&["report", text, "--format", "json"]).json();
        let sums = toml(&path.with_file_name(format!("{name}.sums.toml"))).expect("sums");
        let count = |key: &str| report[key].as_u64().expect(key);
        assert_eq!(
            count("lines"),
            sums["lines"].as_integer().expect("a number") as u64,
            "{name}"
        );
        assert_eq!(
            count("understood") + count("not_understood"),
            count("lines"),
            "{name}"
        );
        assert_eq!(count("not_understood"), 0, "{name}");
        assert_eq!(count("lost"), 0, "{name}");
        for (event, number) in sums["events"].as_table().expect("events") {
            let counted = report["events"][event].as_u64();
            assert_eq!(
                counted,
                number.as_integer().map(|n| n as u64),
                "{name}: {event}"
            );
        }
        // The counters that the kernel kept meanwhile.
        let taken = toml(&path.with_file_name(format!("{name}.toml"))).expect("what was run");
        let delta = |field: &str| {
            let deltas = taken["vmstat_delta"].as_table()?;
            deltas.get(field).and_then(toml::Value::as_integer)
        };
        let list = |what: &str| {
            let (anon, file) = (
                delta(&format!("{what}_anon")),
                delta(&format!("{what}_file")),
            );
            (anon.unwrap_or(0) + file.unwrap_or(0)) as u64
        };
        assert_eq!(
            sum(&report["totals"], "reclaimed"),
            list("pgsteal"),
            "{name}"
        );
        if !name.contains("mglru") {
            assert_eq!(sum(&report["totals"], "scanned"), list("pgscan"), "{name}");
        }
    }
}

#[test]
fn the_models_events_and_their_text_give_the_same_report() {
    let place = Place::new();
    // No batch is under way when kswapd sleeps.
    place.write(
        "small.toml",
        &SMALL.replace("title =", "end = \"kswapd-idle\"\ntitle ="),
    );
    for kernel in [
        "v3.2", "v3.6", "v3.14", "v4.4", "v4.10", "v4.12", "v6.1", "v6.18",
    ] {
        let args = [
            "run",
            "small.toml",
            "--set",
            "order=seq",
            "--kernel",
            kernel,
        ];
        let out = ["--out", kernel, "--events", "--quiet"];
        place
            .lowmark(&[args.as_slice(), out.as_slice()].concat())
            .good();
        let recording = std::fs::read_dir(place.path(kernel)).expect("recordings");
        let recording = recording.filter_map(Result::ok).next().expect("one").path();
        let recording = recording.to_str().expect("UTF-8");
        place
            .lowmark(&[
                "export", recording, "--format", "ftrace", "-o", "text", "-q",
            ])
            .good();
        for mode in [["--format", "json"], ["--compat", "--ignore-pid"]] {
            let report = |what: &str| {
                let done = place.lowmark(&[["report", what].as_slice(), mode.as_slice()].concat());
                done.good()
            };
            let (own, text) = (report(recording), report("text"));
            if mode[0] == "--compat" {
                assert_eq!(own, text, "{kernel}");
                continue;
            }
            let (own, text): (Value, Value) = (
                serde_json::from_str(&own).expect("JSON"),
                serde_json::from_str(&text).expect("JSON"),
            );
            let span = |report: &Value| report["span_s"].as_f64().expect("a span");
            assert!((span(&own) - span(&text)).abs() < 2e-6, "{kernel}");
            for check in own["vmstat_check"].as_array().expect("checks") {
                assert_eq!(check["trace"], check["vmstat"], "{kernel}: {check}");
            }
            // The run's own counters and times are in no text.
            let from_elsewhere = [
                "comments",
                "vmstat",
                "missing",
                "derived",
                "span_s",
                "vmstat_check",
            ];
            for (key, value) in own.as_object().expect("an object") {
                if !from_elsewhere.contains(&key.as_str()) {
                    assert_eq!(*value, text[key], "{kernel}: {key}");
                }
            }
        }
    }
}

/// Memory that is in use, and blocks of 32 pages that a task asks for.
const BLOCKS: &str = r#"
lowmark = 1
[workload]
name = "blocks"
title = "Blocks are asked for in full memory"
end = "kswapd-idle"
[machine]
use = "small-512m-ssd"
ram = "32M"
occupied = "1M"
reserved = "1M"
[kernel]
use = "v2.6.36"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "36M" },
  { touch = "m", access = "write" },
  { alloc = "blocks", order = 5, gfp = "movable", count = 20, pace = "1ms" },
  { free = "blocks" },
]
"#;

/// What a batch of lumpy reclaim took of the blocks around its pages is printed as 2.6.36 prints it, and read back by the rules of
/// the kernel's own script: what it counts as scanned is what the kernel counts, mode ISOLATE_ACTIVE, which is 1 there, left out.
#[test]
fn lumpy_reclaim_is_told_as_2_6_36_prints_it() {
    let place = Place::new();
    place.write("blocks.toml", BLOCKS);
    let run = ["run", "blocks.toml", "--out", "runs", "--events", "--quiet"];
    place.lowmark(&run).good();
    let recordings = std::fs::read_dir(place.path("runs")).expect("recordings");
    let recording = recordings
        .filter_map(Result::ok)
        .next()
        .expect("one")
        .path();
    let recording = recording.to_str().expect("UTF-8");
    let export = [
        "export", recording, "--format", "ftrace", "-o", "text", "-q",
    ];
    place.lowmark(&export).good();
    let text = std::fs::read_to_string(place.path("text")).expect("text");
    const FIELDS: [&str; 8] = [
        "isolate_mode",
        "order",
        "nr_requested",
        "nr_scanned",
        "nr_taken",
        "contig_taken",
        "contig_dirty",
        "contig_failed",
    ];
    let (mut scanned, mut contig, mut both) = (0, [0; 3], 0);
    for line in text.lines() {
        let Some((_, fields)) = line.split_once("mm_vmscan_lru_isolate: ") else {
            continue;
        };
        let pairs: Vec<(&str, u64)> = fields
            .split(' ')
            .map(|pair| {
                let (name, value) = pair.split_once('=').expect("name=value");
                (name, value.parse().expect("a number"))
            })
            .collect();
        let names: Vec<&str> = pairs.iter().map(|&(name, _)| name).collect();
        assert_eq!(names, FIELDS);
        let of = |at: usize| pairs[at].1;
        if of(0) != 1 {
            scanned += of(3);
        }
        assert!(of(5) <= of(4), "{line}");
        assert!(of(6) <= of(5), "{line}");
        both += u64::from(of(0) == 2 && of(1) == 5);
        (0..3).for_each(|at| contig[at] += of(5 + at));
    }
    let [taken, dirty, _] = contig;
    assert!(both > 0 && taken > 0, "{both} {contig:?}");
    assert!(dirty <= taken);
    let json: Value = serde_json::from_str(
        &place
            .lowmark(&["report", "text", "--format", "json"])
            .good(),
    )
    .expect("JSON");
    assert_eq!(json["not_understood"], 0);
    let counters = std::fs::read_to_string(format!("{recording}/recording.json"));
    let counters: Value = serde_json::from_str(&counters.expect("a recording")).expect("JSON");
    let counted: u64 = counters["counters"]
        .as_object()
        .expect("counters")
        .iter()
        .filter(|(name, _)| name.starts_with("pgscan_kswapd") || name.starts_with("pgscan_direct"))
        .filter_map(|(_, count)| count.as_u64())
        .sum();
    assert!(scanned >= counted && counted > 0, "{scanned} {counted}");
    let compat = ["report", "text", "--compat", "--ignore-pid"];
    let (own, theirs) = (
        place
            .lowmark(&["report", recording, "--compat", "--ignore-pid"])
            .good(),
        place.lowmark(&compat).good(),
    );
    assert_eq!(own, theirs);
}

/// Written anew, a trace of a kernel newer than the newest that is modelled loses none of its events.
#[test]
fn nothing_is_lost_when_a_trace_is_written_anew() {
    let place = Place::new();
    for (path, name) in captures() {
        let path = path.to_str().expect("UTF-8");
        let done = place.lowmark(&["export", path, "--format", "ftrace", "-o", "anew"]);
        assert!(!done.stderr.contains("left out"), "{name}: {}", done.stderr);
        done.good();
        let events = |what: &str| {
            let report = place.lowmark(&["report", what, "--format", "json"]).json();
            report["events"].clone()
        };
        assert_eq!(events(path), events("anew"), "{name}");
    }
}

#[test]
fn traces_stand_side_by_side() {
    let place = Place::new();
    let captures = captures();
    let (a, b) = (
        captures[0].0.to_str().expect("UTF-8"),
        captures[1].0.to_str().expect("UTF-8"),
    );
    let table = place.lowmark(&["compare", a, b]).good();
    for row in [
        "Direct reclaims",
        "Kswapd pages scanned",
        "Reclaim efficiency",
    ] {
        assert!(table.contains(row), "{table}");
    }
    place
        .lowmark(&["compare", a, b, "--kernel", "v3.6"])
        .error(&["--kernel", "has no meaning"]);
}

/// Writers stand by the names that a report has for them, and blocks of zeros are left out and named.
#[test]
fn throttled_writers_stand_side_by_side() {
    let place = Place::new();
    let captures = captures();
    let capture = |part: &str| {
        let found = captures.iter().find(|(_, name)| name.contains(part));
        found
            .and_then(|(path, _)| path.to_str())
            .expect("a capture")
    };
    let (host, guest) = (capture("host-writers"), capture("vm-6.18-writers"));
    let table = place.lowmark(&["compare", host, guest]).good();
    let report = place.lowmark(&["report", guest]).good();
    let row = |text: &str, name: &str| {
        let row = text.lines().find(|line| line.starts_with(name));
        row.map(|row| {
            row[name.len()..]
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
    };
    for name in [
        "Writers",
        "balance_dirty_pages() calls",
        "Pause, longest (ms)",
    ] {
        let (compared, own) = (
            row(&table, name).expect(name),
            row(&report, name).expect(name),
        );
        assert_eq!(compared[1], own[0], "{table}");
    }
    assert!(table.contains("Time waited by all (s)"), "{table}");
    assert!(!table.contains("Direct reclaims"), "{table}");
    let left_out = "Left out, as every row is 0 in all columns: FTrace Reclaim Statistics: vmscan.";
    assert!(table.ends_with(&format!("\n\n{left_out}\n")), "{table}");
    // One with writers is enough.
    let swaps = capture("vm-6.18-swap-rand");
    let table = place.lowmark(&["compare", host, swaps]).good();
    assert!(table.contains("Direct reclaims"), "{table}");
    assert_eq!(
        row(&table, "Writers"),
        Some(vec!["4".to_owned(), "0".to_owned()])
    );
    assert!(
        !place
            .lowmark(&["compare", swaps, swaps])
            .good()
            .contains("Writers")
    );
    let asked = ["compare", host, swaps, "--metric", "writers"];
    assert_eq!(place.lowmark(&asked).good().lines().count(), 4);
    place
        .lowmark(&["compare", host, swaps, "--metric", "nix"])
        .error(&["no figure is called nix", "Writers"]);
}

const LINE: &str =
    "         kswapd0-49      [000] .....     5.136763: mm_vmscan_kswapd_wake: nid=0 order=0\n";

#[test]
fn what_is_no_trace_is_told() {
    let place = Place::new();
    let write =
        |name: &str, bytes: &[u8]| std::fs::write(place.path(name), bytes).expect("written");
    write("empty", b"");
    place
        .lowmark(&["report", "empty"])
        .error(&["empty", "expected"]);
    place.lowmark(&["report", "nowhere"]).error(&["nowhere"]);
    std::fs::create_dir(place.path("directory")).expect("made");
    place
        .lowmark(&["report", "directory"])
        .error(&["directory", "recording.json"]);
    let noise: Vec<u8> = (0..5000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    write("noise", &noise);
    place
        .lowmark(&["report", "noise"])
        .error(&["noise", "offset"]);
    write(
        "other",
        b"  bash-1 [000] .....  1.000000: sched_switch: prev_comm=bash ==> next_comm=a\n",
    );
    place
        .lowmark(&["report", "other"])
        .error(&["event sched_switch (1)", "docs/events.md"]);
    let forged = [b"\x17\x08\x44tracing6\0\0\x08".as_slice(), &[0xff; 40]].concat();
    write("forged.dat", &forged);
    place
        .lowmark(&["report", "forged.dat"])
        .error(&["forged.dat", "offset"]);
    write("reversed.data", b"2ELIFREP\0\0\0\0\0\0\0\x68rest");
    place
        .lowmark(&["report", "reversed.data"])
        .error(&["reversed.data", "offset"]);
}

#[test]
fn what_can_be_read_of_a_broken_trace_is_reported() {
    let place = Place::new();
    let good = LINE.repeat(3);
    let report = |name: &str, text: &[u8]| {
        std::fs::write(place.path(name), text).expect("written");
        let strict = place.lowmark(&["report", name, "--strict"]);
        let done = place.lowmark(&["report", name, "--format", "json"]);
        let document: Value = serde_json::from_str(&done.stdout).expect("a report");
        assert_eq!(document["events"]["mm_vmscan_kswapd_wake"], 3, "{name}");
        strict.error(&[name]);
        (done.status, done.stderr)
    };
    let (status, said) = report("cut", format!("{good}{}", &LINE[..40]).as_bytes());
    assert_eq!(status, 2);
    assert!(
        said.contains("cut short") && said.contains("line 4 (offset"),
        "{said}"
    );
    let long = [good.as_bytes(), &vec![b'x'; 3 << 20], b"\n"].concat();
    let (status, said) = report("long", &long);
    assert_eq!(status, 2);
    assert!(
        said.contains("too long") && said.contains("line 4 (offset"),
        "{said}"
    );
    let earlier = LINE
        .replace("5.136763", "4.136763")
        .replace("kswapd_wake", "kswapd_sleep");
    let (status, said) = report("unsorted", format!("{good}{earlier}").as_bytes());
    assert_eq!(status, 0);
    assert!(
        said.contains("1 event is earlier") && said.contains("line 4 (offset"),
        "{said}"
    );
    let (status, said) = report("lost", format!("{good}CPU:1 [LOST 7 EVENTS]\n").as_bytes());
    assert_eq!(status, 0);
    assert!(said.contains("7 events were lost"), "{said}");
}

/// What no kernel can have said counts nowhere: neither in the table nor in the answer above it.
#[test]
fn impossible_events_of_writers_are_left_out_of_the_whole_report() {
    let place = Place::new();
    let line = |ms: u32, dirtied: u64| {
        format!(
            "rl-1 [001] .....  1.{ms:03}000: balance_dirty_pages: bdi 254:0: limit=9 setpoint=1 dirty={dirtied} \
             wb_setpoint=1 wb_dirty=1 dirty_ratelimit=1 task_ratelimit=0 dirtied={dirtied} dirtied_pause=32 paused=0 \
             pause=5 period=200 think=0 cgroup_ino=1\n"
        )
    };
    let trace = [line(0, u64::MAX), line(100, u64::MAX)].concat();
    place.write("trace.txt", &trace);
    let done = place.lowmark(&["report", "trace.txt"]);
    let said = done.stderr.clone();
    assert!(
        said.contains("2 events were left out of the figures on dirty throttling"),
        "{said}"
    );
    let text = done.good();
    assert!(
        !text.contains("Tasks waited") && !text.contains("D1"),
        "{text}"
    );
    assert!(
        text.contains("(s)                            0.00\n"),
        "{text}"
    );
    let json = place
        .lowmark(&["report", "trace.txt", "--format", "json"])
        .json();
    assert_eq!(json["dirty_throttling"]["waited_s"].to_string(), "0.0");
    for more in [&[][..], &["--compat"]] {
        let args = [&["report", "trace.txt", "--strict"], more].concat();
        place
            .lowmark(&args)
            .error(&["trace.txt: 2 events were left out"]);
    }
    let why = place.lowmark(&["why", "trace.txt"]);
    assert!(why.stderr.contains("2 events were left out"), "{why:?}");
    assert!(why.stdout.contains("Nothing found"), "{why:?}");
    place.write("trace.txt", &line(0, 8));
    place.lowmark(&["report", "trace.txt", "--strict"]).good();
}

/// Any process of the traced host can give itself such a name with `prctl(PR_SET_NAME)`.
#[test]
fn escape_sequences_are_shown_and_not_sent() {
    let place = Place::new();
    let name = "\u{1b}[31mred";
    let line = |ms: u32, event: &str| format!("{name}-8 [000] .....  5.{ms:03}000: {event}\n");
    let direct = |what: &str| format!("mm_vmscan_direct_reclaim_{what}");
    let pause = "balance_dirty_pages: bdi 254:0: limit=1 setpoint=1 dirty=1 wb_setpoint=1 wb_dirty=1 \
                 dirty_ratelimit=1 task_ratelimit=0 dirtied=1 dirtied_pause=32 paused=0 pause=5 period=200 \
                 think=0 cgroup_ino=1";
    let text = [
        line(1, &direct("begin: order=0 gfp_flags=GFP_KERNEL")),
        line(2, &direct("end: nr_reclaimed=3")),
        line(3, pause),
        line(4, &format!("{name}: x=1")),
    ];
    let file = "\u{1b}[32mgreen";
    place.write(file, &text.concat());
    for args in [
        vec!["report", file],
        vec!["report", file, file],
        vec!["report", file, "--compat"],
        vec!["compare", file, file],
        vec!["report", "\u{1b}[33mnowhere"],
    ] {
        let done = place.lowmark(&args);
        for said in [&done.stdout, &done.stderr] {
            assert!(!said.contains('\u{1b}'), "{args:?}: {said}");
        }
        let said = done.stdout + &done.stderr;
        assert!(said.contains("\\u{1b}[3"), "{args:?}: {said}");
    }
}

#[test]
fn exports_refuse_what_cannot_be() {
    let place = Place::new();
    let (capture, _) = &captures()[0];
    let capture = capture.to_str().expect("UTF-8");
    place
        .lowmark(&["export", capture, "--format", "parquet"])
        .error(&["--output"]);
    place
        .lowmark(&["export", capture, "--format", "xml"])
        .error(&["xml", "perfetto"]);
    place.write("occupied", "");
    place
        .lowmark(&["export", capture, "--format", "csv", "-o", "occupied"])
        .error(&["occupied"]);
    place
        .lowmark(&[
            "run",
            "small.toml",
            "--set",
            "order=seq",
            "--out",
            "runs",
            "-q",
        ])
        .good();
    let recording = std::fs::read_dir(place.path("runs")).expect("runs");
    let recording = recording.filter_map(Result::ok).next().expect("one").path();
    let recording = recording.to_str().expect("UTF-8").to_owned();
    place
        .lowmark(&["report", &recording])
        .error(&["no events", "--events"]);
}

#[test]
fn a_directory_of_recordings_is_all_of_them() {
    let place = Place::new();
    let args = ["run", "small.toml", "--events", "--out", "out"];
    place.lowmark(&args).good();
    let names =
        ["random", "seq"].map(|order| format!("out/small_order={order}_small-512m-ssd_v3.6_seed0"));
    let each = place.lowmark(&["report", &names[0], &names[1]]).good();
    assert_eq!(place.lowmark(&["report", "out"]).good(), each);
    // Beside a trace as well.
    place.write("trace.txt", LINE);
    let compared = |targets: &[&str]| place.lowmark(&[&["compare", "trace.txt"], targets].concat());
    let each = compared(&[&names[0], &names[1]]).good();
    assert_eq!(compared(&["out"]).good(), each);
    std::fs::create_dir(place.path("empty")).expect("made");
    place
        .lowmark(&["report", "empty"])
        .error(&["empty: a directory without recording.json"]);
    // Of the same name in two places, none hides the other.
    let args = [
        "run",
        "small.toml",
        "--set",
        "order=seq",
        "--kernel",
        "v3.6",
        "--events",
        "--out",
        "more",
    ];
    place.lowmark(&args).good();
    let more = names[1].replace("out/", "more/");
    let document = place
        .lowmark(&["report", &names[1], &more, "--format", "json"])
        .json();
    assert_eq!(document.as_object().map(|reports| reports.len()), Some(2));
}

#[test]
fn values_that_make_no_sense_are_refused() {
    let place = Place::new();
    for (flag, value) in [
        ("--elapsed", "nan"),
        ("--user", "inf"),
        ("--system", "-1"),
        ("--user", "x"),
    ] {
        let given = format!("{flag}={value}");
        place
            .lowmark(&["report", "trace", &given])
            .error(&[flag, "expected seconds"]);
    }
    for era in ["9.9", "2.6.20", "7.3"] {
        place
            .lowmark(&["export", "trace", "--format", "ftrace", "--era", era])
            .error(&["--era", "expected a release from 2.6.36 to 7.2"]);
    }
}

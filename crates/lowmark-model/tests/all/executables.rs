//! How reclaim treats references to file pages that are mapped executable or by several processes. The values are worked
//! by hand from `page_check_references` and `shrink_active_list`.

use crate::common;
use lowmark_model::Options;
use lowmark_record::{Event, Field, Kind, Outcome, Recording};

/// A program of 4 MiB on a machine of 64, mapped once or by several processes, that is used, and files that are read
/// behind it; `meanwhile` its processes go on. Then the program is used again.
fn run(kernel: &str, exec: bool, processes: u32, meanwhile: &str, reads: &str) -> Recording {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "program"
title = "program"
[machine]
use = "small-512m-ssd"
ram = "64M"
reserved = "4M"
occupied = "8M"
[kernel]
use = "{kernel}"
[file.program]
size = "4M"
[file.stream]
size = "200M"
[file.twice]
size = "32M"
[task.runs]
processes = {processes}
run = [
  {{ map = "text", kind = "file-private", file = "program", exec = {exec} }},
  {{ touch = "text", access = "read" }},
  {{ barrier = "used" }},{meanwhile}
  {{ barrier = "read" }},
  {{ touch = "text", access = "read" }},
]
[task.reader]
run = [{{ barrier = "used" }}, {reads}, {{ barrier = "read" }}]
[barrier.used]
parties = {parties}
[barrier.read]
parties = {parties}
"#,
        parties = processes + 1
    );
    let options = Options {
        events: true,
        check_every: 5_000,
    };
    let recording = lowmark_model::run(&common::scenarios(text)[0], &options, &mut |_| {})
        .expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed);
    recording
}

/// Whether the program was still there when it was used again, beside the stream.
fn stays(kernel: &str, exec: bool, processes: u32) -> bool {
    let recording = run(kernel, exec, processes, "", r#"{ read = "stream" }"#);
    let (program, stream) = (4 << 10, 200 << 10);
    match recording.counters["pgpgin"] - stream {
        read if read <= program + 512 => true,
        read if read >= 2 * program - 512 => false,
        other => panic!("{other} KiB of the program were read on {kernel}"),
    }
}

/// At the tail of the inactive list all pages of the program are found referenced once. To 3.2 they are spared once, and
/// gone with the next pass; from 3.3 on those are activated that may be executed, or that several processes have used.
#[test]
fn a_program_that_was_used_once_stays_from_3_3_on() {
    for (kernel, exec, processes, expected) in [
        ("v2.6.36", true, 1, false),
        ("v3.2", true, 1, false),
        ("v3.2", true, 2, false),
        ("v3.2", false, 2, false),
        ("v3.2+activate-executable", true, 1, true),
        ("v3.2+activate-executable", false, 2, false),
        ("v3.2+activate-shared", true, 1, false),
        ("v3.2+activate-shared", false, 2, true),
        ("v3.3", false, 1, false),
        ("v3.3", true, 1, true),
        ("v3.3", false, 2, true),
        ("v4.4", true, 1, true),
        ("v6.1", false, 1, false),
        ("v6.1", true, 1, true),
        ("v6.18", true, 1, true),
    ] {
        let found = stays(kernel, exec, processes);
        assert_eq!(
            found, expected,
            "{processes} on {kernel}, executable: {exec}"
        );
    }
}

/// Of the pages of the active list those stay on it that were used through a mapping that may be executed
/// (`shrink_active_list`), and the tracepoint says so.
#[test]
fn used_pages_of_programs_stay_on_the_active_list() {
    // The program goes on; a file that is read twice becomes active, and pushes the program down the active list.
    let again =
        r#"{ repeat = 400, do = [{ touch = "text", access = "read" }, { sleep = "5ms" }] },"#;
    let twice =
        r#"{ repeat = 4, do = [{ repeat = 3, do = [{ read = "twice" }] }, { read = "stream" }] }"#;
    for kernel in ["v4.12", "v5.10", "v6.1", "v6.18"] {
        let of = |exec: bool| {
            let recording = run(kernel, exec, 1, again, twice);
            let shrinks = |event: &Event| event.kind == Kind::LruShrinkActive;
            let events: Vec<Event> = recording.events.iter().filter(shrinks).collect();
            let sum = |field| -> u64 { events.iter().filter_map(|event| event.get(field)).sum() };
            let (taken, active) = (sum(Field::NrTaken), sum(Field::NrActive));
            assert_eq!(taken, active + sum(Field::NrDeactivated), "{kernel}");
            assert_eq!(
                sum(Field::NrDeactivated),
                recording.counters["pgdeactivate"]
            );
            (taken, active)
        };
        let (taken, active) = of(true);
        assert!(
            active > 0 && active < taken,
            "{kernel}: {active} of {taken}"
        );
        let (taken, active) = of(false);
        assert!(taken > 0 && active == 0, "{kernel}: {active} of {taken}");
    }
}

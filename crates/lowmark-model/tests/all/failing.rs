//! Statements that cannot be carried out end the run and are named, as on a real kernel.

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::{Outcome, Recording};

/// How a run ends whose statements begin in line 2: on a disk with so much room there is a file of 64 KiB, and of
/// another one and of a set there are only the names.
fn outcome(room: &str, statements: &str) -> Outcome {
    let text = format!(
        r#"task.main.run = [
{statements}
]
lowmark = 1
file.there.size = "64K"
file.absent.exists = false
fileset.some = {{ files = 2, size = "4K", exists = false }}
[workload]
name = "failing"
[kernel]
use = "v6.18"
[machine]
ram = "16M"
cpus = 1
description = "small"
filesystem.data = {{ kind = "ext4", device = "sda" }}
{disk}"#,
        disk = include_str!("common/small-ssd.toml").replace("2G", room),
    );
    let scenario = &common::scenarios(text)[0];
    let recording = run(scenario, &Options::default(), &mut |_| {});
    recording.expect("the model can run it").outcome
}

const MAP: &str = r#"{ map = "m", kind = "anon-private", size = "64K" }"#;

#[test]
fn what_fails_is_named_with_its_line() {
    let touch = r#"{ touch = "m", access = "read", order = "seq", passes = 1 }"#;
    let unmap = "[{ sleep = \"1ms\" }, { unmap = \"m\" }]";
    let map_file = r#"{ map = "m", file = "there", kind = "file-shared" }"#;
    let cases = [
        (
            4,
            format!(
                "{MAP}, {{ parallel = [\n{unmap},\n[{{ repeat = 1000000, do = [{touch}] }}]] }}"
            ),
            "touch: the map is not there (SIGSEGV)",
        ),
        (
            4,
            "{ repeat = 2, do = [\n{ sync = true },\n{ read = \"absent\", count = 1 }] }".into(),
            "read: the file is not there (ENOENT)",
        ),
        (
            2,
            r#"{ map = "m", kind = "anon-shared", size = "20T" }"#.into(),
            "map: mmap failed (ENOMEM): larger than RAM and swap together; set overcommit_memory = 1 to allow it",
        ),
        (
            2,
            format!(r#"{{ delete = "there" }}, {map_file}"#),
            "map: the file is not there (ENOENT)",
        ),
        (
            3,
            format!("{map_file}, {{ truncate = \"there\", size = 4096 }},\n{touch}"),
            "touch: no page there: behind the end of the file, or no space left on its device (SIGBUS)",
        ),
    ];
    for (line, statements, problem) in cases {
        let failed = Outcome::Failed {
            task: "main".into(),
            line,
            verdict: problem.into(),
        };
        assert_eq!(outcome("2G", &statements), failed, "{statements}");
    }
}

/// A file of its own has to be there, one of a set need not: other tasks delete too.
#[test]
fn files_that_are_missing() {
    let statements = [
        r#"{ read = "FILE", count = 1 }"#,
        r#"{ fsync = "FILE" }"#,
        r#"{ truncate = "FILE" }"#,
        r#"{ delete = "FILE" }"#,
    ];
    let alone = [
        r#"{ sync_range = "FILE" }"#,
        r#"{ copy = "FILE", to = "there" }"#,
    ];
    for statement in statements.iter().chain(&alone) {
        match outcome("2G", &statement.replace("FILE", "absent")) {
            Outcome::Failed { verdict, .. } => {
                assert!(
                    verdict.ends_with(": the file is not there (ENOENT)"),
                    "{verdict}"
                );
            }
            other => panic!("{statement}: {other:?}"),
        }
    }
    for statement in statements {
        let set = statement.replace("FILE", "some");
        assert_eq!(outcome("2G", &set), Outcome::Completed, "{statement}");
    }
}

#[test]
fn a_device_that_is_full() {
    let fill = r#"{ append = "absent", block = "64K", count = 1000 }"#;
    assert_eq!(outcome("2G", fill), Outcome::Completed);
    let failed = Outcome::Failed {
        task: "main".into(),
        line: 2,
        verdict: "append: no space left on the device (ENOSPC)".into(),
    };
    assert_eq!(outcome("16M", fill), failed);
}

/// What guests of 6.1 and 6.18 with 256 MB and 512 MB of swap map, and what they do not: they count the memory that
/// their kernels manage, 38 and 45 MB less. Older ones count what is free.
#[test]
fn maps_that_are_too_large() {
    let outcome = |kernel: &str, kind: &str, size: &str| {
        let text = format!(
            r#"lowmark = 1
[workload]
name = "maps"
[kernel]
use = "{kernel}"
[machine]
use = "guest-256m"
reserved = "40M"
occupied = "20M"
[task.main]
run = [{{ map = "m", kind = "{kind}", size = "{size}" }}]
"#
        );
        let scenario = &common::scenarios(text)[0];
        let recording = run(scenario, &Options::default(), &mut |_| {});
        recording.expect("the model can run it").outcome
    };
    for kind in ["anon-private", "anon-shared"] {
        let granted = |kernel: &str, size: &str| outcome(kernel, kind, size) == Outcome::Completed;
        for kernel in ["v6.1", "v6.18"] {
            assert!(granted(kernel, "RAM+512M-60M"), "{kernel} {kind}");
            assert!(!granted(kernel, "RAM+512M-30M"), "{kernel} {kind}");
            let always = format!("{kernel},overcommit_memory=1");
            assert!(granted(&always, "RAM+512M+1G"), "{kernel} {kind}");
            // A bound of the model, not of the memory that the host has for page tables.
            for (size, gib) in [("5T", 5120), ("100T", 102_400)] {
                let expected =
                    format!("map: {gib} GiB; the model holds 4 TiB in all maps together (ENOMEM)");
                match outcome(&always, kind, size) {
                    Outcome::Failed { verdict, .. } => assert_eq!(verdict, expected),
                    other => panic!("{kernel} {kind}: {other:?}"),
                }
            }
        }
        for kernel in ["v2.6.37", "v4.4"] {
            assert!(!granted(kernel, "RAM+512M-60M"), "{kernel} {kind}");
            assert!(granted(kernel, "RAM+512M-90M"), "{kernel} {kind}");
        }
    }
}

/// A run on 3.6, whose kernel threads have nothing to do in between, with statements from line 2 on.
fn run_for_long(end: &str, statements: &str) -> Recording {
    let text = format!(
        r#"task.main.run = [
{statements}
]
lowmark = 1
[workload]
name = "long"
end = {end}
[kernel]
use = "v3.6"
[machine]
use = "small-512m-ssd"
"#
    );
    let scenario = &common::scenarios(text)[0];
    let recording = run(scenario, &Options::default(), &mut |_| {});
    recording.expect("the model can run it")
}

/// 292 years, the largest time of the language, are as long as a run can be. What is due later does not happen, and the
/// run does not claim to be complete.
#[test]
fn virtual_time_ends() {
    const YEARS_292: &str = r#"{ sleep = "9223372036s" }"#;
    const ENDED: &str = "virtual time ended: a run of the model lasts 292 years (2^63 ns) at most";
    let paced = r#"{ map = "m", kind = "anon-private", size = "1M" },
{ touch = "m", access = "write", order = "seq", count = 3, rate = "1/s" }, { sleep = "9223372034s" },
{ touch = "m", access = "write", order = "seq", count = 3, rate = "1/s" }"#;
    let cases = [
        (
            3,
            format!("{YEARS_292},\n{YEARS_292},\n{YEARS_292}"),
            9_223_372_036,
        ),
        (
            3,
            format!("{{ repeat = 5, do = [\n{YEARS_292},\n{{ sync = true }}] }}"),
            9_223_372_036,
        ),
        (
            2,
            "{ until = \"pgfault > 9\", poll = \"9223372036s\", do = [\n{ sync = true }] }"
                .to_owned(),
            9_223_372_036,
        ),
        (
            4,
            format!("{YEARS_292},\n{{ parallel = [[{{ sync = true }}], [\n{YEARS_292}]] }}"),
            9_223_372_036,
        ),
        (4, paced.to_owned(), 9_223_372_036),
    ];
    for (line, statements, seconds) in cases {
        let recording = run_for_long("\"all-tasks\"", &statements);
        let ended = Outcome::Failed {
            task: "main".into(),
            line,
            verdict: ENDED.into(),
        };
        assert_eq!(recording.outcome, ended, "{statements}");
        assert_eq!(
            recording.elapsed_ns / 1_000_000_000,
            seconds,
            "{statements}"
        );
    }
}

/// A time beyond the end does no harm where nobody waits for it.
#[test]
fn what_never_comes_is_not_waited_for() {
    let sleep =
        r#"{ sleep = { uniform = ["9223372036s", "9223372036s"] } }, { sleep = "9223372036s" }"#;
    let both = format!("{{ parallel = [[{sleep}], [{{ sleep = \"1s\" }}]] }}");
    let recording = run_for_long("{ after = \"9223372036s\" }", &both);
    assert_eq!(recording.outcome, Outcome::Completed);
    let drawn = r#"{ repeat = 100, do = [{ parallel = [[{ sleep = { exponential = "9223372036s" } }]] }] }"#;
    let recording = run_for_long("{ after = \"60s\" }", drawn);
    assert_eq!(
        (recording.outcome, recording.elapsed_ns),
        (Outcome::Completed, 60_000_000_000)
    );
}

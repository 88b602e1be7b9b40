//! Settings that a workload writes while it runs.

use crate::common::scenarios;
use lowmark_model::{Options, Refusal, check, run};
use lowmark_record::{Outcome, Recording};

const MACHINE: &str = r#"
lowmark = 1
[workload]
name = "settings"
[machine]
ram = "256M"
cpus = 2
device.sda = { kind = "hdd", size = "20GB", position_read = "2ms", position_write = "1ms",
  command_read = "62us", command_write = "0ns", rate = "100MB/s" }
filesystem.data = { kind = "ext4", device = "sda" }
"#;

fn recording(text: &str) -> Recording {
    let options = Options {
        events: true,
        check_every: 0,
    };
    let scenario = &scenarios(text.to_owned())[0];
    let recording = run(scenario, &options, &mut |_| {}).expect("the model has all of it");
    assert_eq!(recording.outcome, Outcome::Completed);
    recording
}

/// Where `min_free_kbytes` is raised kswapd keeps so much more free from then on, and again less when it falls.
#[test]
fn watermarks_follow_while_tasks_run() {
    for kernel in ["v3.3", "v6.1"] {
        let text = format!(
            r#"{MACHINE}
[kernel]
use = "{kernel}"
[file.data]
size = "1G"
[task.main]
run = [
  {{ read = "data" }},
  {{ sysctl = "min_free_kbytes", value = 32768 }},
  {{ read = "data" }},
  {{ sleep = "1s" }},
]
"#
        );
        let raised = recording(&text);
        let low = recording(&text.replace("value = 32768", "value = 2048"));
        let free = |recording: &Recording| recording.state["nr_free_pages"];
        assert!(free(&raised) > 8192, "{kernel}: {}", free(&raised));
        assert!(free(&low) < 4096, "{kernel}: {}", free(&low));
    }
}

/// A setting that is read whenever it is needed counts from the statement on.
#[test]
fn writers_are_held_to_the_limit_of_the_moment() {
    let text = format!(
        r#"{MACHINE}
[kernel]
use = "v6.1"
sysctl = {{ dirty_bytes = "64M", dirty_background_bytes = "32M" }}
[file.out]
exists = false
[task.main]
run = [
  {{ sysctl = "dirty_bytes", value = "8M" }},
  {{ sysctl = "dirty_background_bytes", value = "4M" }},
  {{ append = "out", block = "1M", count = 100 }},
]
"#
    );
    let dirty = |text: &str| {
        let gauges = recording(text).gauges;
        let at = gauges.names.iter().position(|name| name == "nr_dirty");
        let at = at.expect("the gauge");
        gauges.samples.iter().map(|(_, values)| values[at]).max()
    };
    assert!(dirty(&text) <= Some((8 << 20) / 4096));
    let before = text.replace("{ sysctl = \"dirty_bytes\", value = \"8M\" },", "");
    let before = before.replace(
        "{ sysctl = \"dirty_background_bytes\", value = \"4M\" },",
        "",
    );
    assert!(dirty(&before) > Some((8 << 20) / 4096));
}

#[test]
fn what_a_kernel_does_not_take_is_refused_before_the_run() {
    let said = |kernel: &str, statement: &str| {
        let text = format!(
            "{MACHINE}\n[kernel]\nuse = \"{kernel}\"\n[task.main]\nrun = [{{ repeat = 2, do = [{statement}] }}]\n"
        );
        match check(&scenarios(text)[0]) {
            Err(refusal @ (Refusal::Setting { .. } | Refusal::Workload(_))) => refusal.to_string(),
            other => panic!("{statement}: {other:?}"),
        }
    };
    for (kernel, statement, part) in [
        (
            "v3.3",
            r#"{ sysctl = "swappiness", value = 150 }"#,
            "v3.3 takes 0 to 100",
        ),
        (
            "v6.1",
            r#"{ sysctl = "swappiness", value = 201 }"#,
            "from 0 to 200",
        ),
        (
            "v6.1",
            r#"{ sysctl = "no_such_setting", value = 1 }"#,
            "the model has no setting",
        ),
        (
            "v6.1",
            r#"{ sysctl = "thp.enabled", value = "never" }"#,
            "when the kernel boots",
        ),
    ] {
        let found = said(kernel, statement);
        assert!(
            found.contains(part) && found.contains("task main, line"),
            "{found}"
        );
    }
}

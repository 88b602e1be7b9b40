//! A recording of ten seconds whose figures can be worked out by hand.

use super::*;
use crate::table::PlainStyle;
use lowmark_record::{Outcome, Recorder, RunInfo, TaskTimes};

fn log(file: &str, names: &[&str], looks: &[(u64, &[u64])]) -> CounterLog {
    let mut log = CounterLog::new(file);
    log.add_names(names.iter().copied());
    looks
        .iter()
        .for_each(|(time, values)| log.push(*time, values));
    log
}

fn recording() -> Recording {
    let mut task = log(
        "proc/70/stat",
        &["state", "majflt", "rss"],
        &[
            (0, &[83, 100, 7]),
            (1, &[68, 130, 900]),
            (2, &[68, 150, 20]),
            (3, &[82, 150, 20]),
        ],
    );
    task.task = Some(0);
    let files = |swappiness: &str, used: u64| {
        [
            (
                "proc/sys/vm/swappiness".to_owned(),
                format!("{swappiness}\n"),
            ),
            (
                "proc/swaps".to_owned(),
                format!("Filename Type Size Used\n/dev/vdb partition 9 {used}\n"),
            ),
            ("proc/vmstat".to_owned(), format!("pswpin {used}\n")),
        ]
        .into()
    };
    let system = System {
        release: "6.18.1".to_owned(),
        before: files("60", 1),
        after: files("100", 2),
        history: vec![
            log(
                "proc/pressure/memory",
                &["some", "full"],
                &[(0, &[1_000, 500]), (9, &[2_501_000, 500])],
            ),
            log("proc/pressure/cpu", &["some"], &[(0, &[7]), (9, &[7])]),
            log(
                "proc/diskstats",
                &[
                    "vda/reads",
                    "vda/sectors_read",
                    "vda/read_ms",
                    "vda/writes",
                    "vda/io_ms",
                    "vdb/reads",
                ],
                &[
                    (0, &[10, 0, 0, 3, 0, 5]),
                    (9, &[110, 4096, 250, 3, 5000, 5]),
                ],
            ),
            task,
        ],
        recorder: Some(Recorder {
            level: "counters".to_owned(),
            wall_ns: 10_000_000_000,
            cpu_ns: 25_000_000,
            looks: 99,
            missed_looks: 1,
            ..Recorder::default()
        }),
        ..System::default()
    };
    Recording {
        run: RunInfo {
            workload: "host".to_owned(),
            params: Vec::new(),
            machine: "box".to_owned(),
            kernel: "6.18.1".to_owned(),
            backend: "host".to_owned(),
            lowmark: "0".to_owned(),
            seed: 0,
            left_out: Vec::new(),
        },
        outcome: Outcome::Completed,
        not_modelled: Vec::new(),
        elapsed_ns: 10_000_000_000,
        counters: [("pswpin".to_owned(), 40), ("pswpout".to_owned(), 0)].into(),
        state: Default::default(),
        tasks: vec![TaskTimes {
            name: "\x1b[1mrl".to_owned(),
            pid: 70,
            kthread: false,
            user_ns: 1_500_000_000,
            system_ns: 250_000_000,
            start_ns: 0,
            end_ns: None,
        }],
        phases: Vec::new(),
        series: Vec::new(),
        gauges: Default::default(),
        history: Vec::new(),
        system: Some(Box::new(system)),
        events: Default::default(),
    }
}

#[test]
fn figures_are_what_the_logs_add_up_to() {
    let report = HostReport::new(&recording()).expect("of a host");
    assert_eq!(
        report.pressure,
        [
            Pressure {
                resource: "memory",
                some_s: 2.5,
                full_s: Some(0.0)
            },
            Pressure {
                resource: "cpu",
                some_s: 0.0,
                full_s: None
            },
        ]
    );
    assert_eq!(report.counters, [("pages swapped in", 40)]);
    let disk = Disk {
        name: "vda".to_owned(),
        read_mib: 2.0,
        written_mib: 0.0,
        read_ms: Some(2.5),
        write_ms: None,
        busy: 0.5,
    };
    assert_eq!(report.disks, [disk], "the other one was not used meanwhile");
    let task = &report.tasks[0];
    assert_eq!(
        (task.cpu_s, task.major_faults, task.rss_pages_max),
        (1.75, 50, 900)
    );
    assert!((task.waiting - 0.5).abs() < 1e-12);
    let changed = Changed {
        file: "proc/sys/vm/swappiness".to_owned(),
        before: "60".to_owned(),
        after: "100".to_owned(),
    };
    assert_eq!(
        report.changed,
        [changed],
        "counters change, and so does what is in use"
    );
    assert!((report.recorder_percent - 0.25).abs() < 1e-12);
}

#[test]
fn text_names_everything_and_hides_escape_sequences() {
    let text = HostReport::new(&recording())
        .expect("of a host")
        .text(&PlainStyle, None);
    for part in [
        "box, Linux 6.18.1, 10.0 s\n",
        "99 looks and missed 1; it used 0.025 s of CPU time, 0.25 % of one CPU.",
        "2.500 (  25.00%)",
        "pages swapped in",
        "Settings that changed meanwhile",
        "\\u{1b}[1mrl",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn other_recordings_have_none() {
    let mut recording = recording();
    if let Some(system) = &mut recording.system {
        system.recorder = None;
    }
    assert_eq!(HostReport::new(&recording), None);
    recording.system = None;
    assert_eq!(HostReport::new(&recording), None);
}

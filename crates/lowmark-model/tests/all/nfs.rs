//! Files on a server: what counts as dirty, when a COMMIT is sent and for how much, and that nothing is lost
//! that no disk has.

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::{Event, Field, Kind, Outcome, Recording};

/// A server with a disk of 60 MB/s.
const DISK: &str = "rate = \"60MB/s\"";
/// A network of a gigabit.
const NET: &str = "round_trip = \"200us\", rate = \"117MB/s\"";

/// A machine with its files on a server of 128 MB.
struct Site<'a> {
    ram: &'a str,
    kernel: &'a str,
    disk: &'a str,
    net: &'a str,
    events: bool,
    check_every: u64,
}

const SITE: Site<'_> = Site {
    ram: "64M",
    kernel: "v3.2",
    disk: DISK,
    net: NET,
    events: false,
    check_every: 0,
};

impl Site<'_> {
    /// A run until all tasks have ended.
    fn record(&self, body: &str) -> Recording {
        self.run("\"all-tasks\"", body)
    }

    /// A run of so long.
    fn record_until(&self, time: &str, body: &str) -> Recording {
        self.run(&format!("{{ after = \"{time}\" }}"), body)
    }

    fn run(&self, end: &str, body: &str) -> Recording {
        let Site {
            ram,
            kernel,
            disk,
            net,
            ..
        } = self;
        let text = format!(
            r#"
lowmark = 1
[workload]
name = "nfs"
end = {end}
[machine]
ram = "{ram}"
cpus = 2
hz = 1000
description = "small"
[machine.device.nas]
kind = "hdd"
size = "20G"
position_read = "8ms"
position_write = "4ms"
command_read = "60us"
command_write = "0ns"
{disk}
server = {{ {net}, ram = "128M", wsize = "256K" }}
[machine.filesystem.data]
kind = "xfs"
device = "nas"
[kernel]
use = "{kernel}"
{body}
"#
        );
        let options = Options {
            events: self.events,
            check_every: self.check_every,
        };
        let recording = run(&common::scenarios(text)[0], &options, &mut |_| {});
        let recording = recording.expect("the model can run it");
        assert_eq!(recording.outcome, Outcome::Completed);
        recording
    }
}

const KERNELS: [&str; 6] = ["v2.6.37", "v3.1", "v3.2", "v4.14", "v5.8", "v6.18"];

/// A writer of `size` that does `end` afterwards.
fn writer(size: &str, end: &str) -> String {
    format!(
        "[file.out]\nsize = \"{size}\"\nexists = false\n[task.dd]\nrun = [{{ append = \"out\", block = \"64K\", count = \"{size}/64K\" }}, {end}]\n"
    )
}

const FSYNC: &str = "{ fsync = \"out\" }";

fn counters(recording: &Recording, names: [&str; 3]) -> [u64; 3] {
    names.map(|name| recording.counters[&format!("nas/{name}")])
}

#[test]
fn a_file_of_one_call_is_written_stable_and_needs_no_commit() {
    for kernel in KERNELS {
        let site = Site { kernel, ..SITE };
        let small = site.record(&writer("64K", FSYNC));
        let names = ["rpc_write", "rpc_write_stable", "rpc_commit"];
        assert_eq!(counters(&small, names), [1, 1, 0], "{kernel}");
        let large = site.record(&writer("1M", FSYNC));
        assert_eq!(counters(&large, names), [4, 0, 1], "{kernel}");
    }
}

#[test]
fn a_commit_brings_what_it_covers_to_the_disk() {
    for kernel in KERNELS {
        let site = Site { kernel, ..SITE };
        let recording = site.record(&writer("4M", FSYNC));
        let names = ["synced_pages", "commit_pages_max", "rpc_commit"];
        let [synced, most, commits] = counters(&recording, names);
        assert_eq!((synced, commits), (1024, 1), "{kernel}");
        assert_eq!(most, 1024, "{kernel}");
        // The data, and the log.
        let sectors = recording.counters["nas/sectors_written"];
        assert_eq!(sectors, (1024 + 1) * 8, "{kernel}");
        let state = ["nr_dirty", "nr_writeback", "nr_unstable"].map(|name| recording.state[name]);
        assert_eq!(state, [0; 3], "{kernel}");
    }
}

/// What counts how 300 ms after 4 MB were sent to a server that does not commit by itself.
fn uncommitted(kernel: &str) -> [u64; 2] {
    let site = Site { kernel, ..SITE };
    let body = writer("4M", "{ sync_range = \"out\" }, { sleep = \"10s\" }");
    let recording = site.record_until("300ms", &body);
    ["nr_unstable", "nr_writeback"].map(|name| recording.state[name])
}

#[test]
fn unstable_pages_count_by_themselves_up_to_5_7() {
    for kernel in ["v2.6.37", "v3.2", "v4.13"] {
        assert_eq!(uncommitted(kernel), [1024, 0], "{kernel}");
    }
    assert_eq!(uncommitted("v4.13+no-nr-unstable-nfs"), [0, 1024]);
    // The end of the turn's writes is followed by a COMMIT.
    assert_eq!(uncommitted("v4.13+nfs-commit-after-writeback"), [0, 0]);
    assert_eq!(uncommitted("v6.18"), [0, 0]);
}

#[test]
fn throttled_writers_see_unstable_pages_as_dirty() {
    let site = Site {
        events: true,
        ..SITE
    };
    let recording = site.record(&writer("96M", FSYNC));
    let events = |kind: Kind| {
        recording
            .events
            .iter()
            .filter(move |event| event.kind == kind)
    };
    let of = |event: Event, field| event.get(field).unwrap_or(0);
    let most = events(Kind::GlobalDirtyState)
        .map(|event| of(event, Field::Unstable))
        .max();
    assert!(most > Some(0), "nothing was ever unstable");
    // The last state before a look of a writer is the one that it was decided by.
    let mut state = None;
    let mut looks = 0;
    for event in recording.events.iter() {
        match event.kind {
            Kind::GlobalDirtyState => state = Some(event),
            Kind::BalanceDirtyPages => {
                let parts = [Field::Dirty, Field::Writeback, Field::Unstable];
                let sum: u64 = parts
                    .iter()
                    .map(|&field| of(state.expect("a state"), field))
                    .sum();
                assert_eq!(of(event, Field::Dirty), sum);
                looks += 1;
            }
            _ => {}
        }
    }
    assert!(looks > 0, "nobody was throttled");
}

#[test]
fn the_slower_of_network_and_disk_decides() {
    let record = |disk: &str, net: &str| {
        let site = Site { disk, net, ..SITE };
        let recording = site.record(&writer("256M", FSYNC));
        let seconds = recording.elapsed_ns as f64 / 1e9;
        let busy = recording.counters["nas/io_ticks_ms"] as f64 / 1e3;
        let seeks = recording.counters["nas/write_seeks"] as f64;
        (seconds, busy / seconds, seeks)
    };
    let bytes = (256 << 20) as f64;
    let (seconds, busy, seeks) = record("rate = \"20MB/s\"\nwritten_share = 100", NET);
    // Each COMMIT moves the head to the log and back, 4 ms each way.
    let data = bytes / 20e6 + seeks * 4e-3;
    assert!((data..data * 1.05).contains(&seconds), "{seconds} {data}");
    assert!(busy > 0.95, "the disk is busy {busy}");
    let net = "round_trip = \"200us\", rate = \"12MB/s\"";
    let (seconds, busy, _) = record("rate = \"200MB/s\"\nwritten_share = 100", net);
    let data = bytes / 12e6;
    assert!((data..data * 1.05).contains(&seconds), "{seconds} {data}");
    assert!(busy < 0.2, "the disk is busy {busy}");
}

#[test]
fn nothing_is_lost() {
    let body = r#"
[file.out]
copies = 3
exists = false
[file.log]
exists = false
[file.old]
size = "4M"
[task.writer]
processes = 3
run = [
  { append = "out$idx", block = "48K", count = 60 },
  { write = "out$idx", block = "12K", order = "random", count = 40 },
  { truncate = "out$idx", size = "1M" },
  { append = "out$idx", block = "16K", count = 50 },
  { fsync = "out$idx" },
  { append = "out$idx", block = "4K", count = 10 },
  { delete = "out$idx" },
]
[task.reader]
run = [{ read = "old", block = "64K" }, { write = "old", block = "4K", order = "random", count = 100 }, { sync = true }]
[task.logger]
run = [{ repeat = 20, do = [{ append = "log", block = "3K" }, { fdatasync = "log" }, { sleep = "3ms" }] }]
"#;
    for kernel in KERNELS {
        let site = Site {
            kernel,
            // Less than is written, so that reclaim meets what waits for a COMMIT.
            ram: "12M",
            disk: "rate = \"20MB/s\"",
            check_every: 1,
            ..SITE
        };
        let recording = site.record(body);
        assert!(recording.counters["nas/rpc_commit"] > 0, "{kernel}");
        assert!(recording.counters["nas/rpc_read"] > 0, "{kernel}");
    }
}

/// Megabytes of a COMMIT in the mean, with N writers on the machine of October 2011.
fn commit_size(kernel: &str, threshold: u64, n: u32, seconds: u32) -> f64 {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "dd-n"
end = {{ after = "{seconds}s" }}
[machine]
use = "server-32g-nfs"
[kernel]
use = "{kernel}"
sysctl = {{ dirty_bytes = {threshold} }}
[file.output]
copies = {n}
exists = false
[task.dd]
processes = {n}
run = [{{ repeat = "forever", do = [{{ append = "output$idx", block = "1M" }}] }}]
"#
    );
    let scenario = &common::scenarios(text)[0];
    let recording = run(scenario, &Options::default(), &mut |_| {});
    let recording = recording.expect("the model can run it");
    let megabytes = recording.counters["nr_written"] as f64 / 256.0;
    let commits = recording.counters["nas/rpc_commit"] as f64;
    megabytes / commits
}

/// `nfs_commit_size` of 3.1-rc4 in the mail of 17 October 2011 on IO-less dirty throttling (Wu Fengguang, linux-nfs):
/// nothing of the machine was fitted to it. That of a threshold of 1 GB is in docs/journal.md.
#[test]
fn commits_are_as_large_as_they_were_in_october_2011() {
    let published = [
        (100, 1, 47.41),
        (100, 2, 29.39),
        (100, 10, 7.69),
        (10, 1, 8.24),
        (10, 2, 5.21),
        (10, 10, 2.73),
    ];
    for (megabytes, n, expected) in published {
        let found = commit_size("v3.1", megabytes << 20, n, 20);
        let ratio = found / expected;
        assert!(
            (0.8..1.25).contains(&ratio),
            "{megabytes} MB, {n} dd: {found} MB"
        );
    }
}

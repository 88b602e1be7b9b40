//! The lock over the lists of dirty inodes: how often it is taken, for how long, and by how many at once.

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::{Outcome, Recording};
use std::fmt::Write;

fn record(text: String) -> Recording {
    let options = Options {
        events: false,
        check_every: 0,
    };
    let recording =
        run(&common::scenarios(text)[0], &options, &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed);
    recording
}

/// A figure of `/proc/lock_stat`.
fn lock(recording: &Recording, name: &str) -> u64 {
    recording.counters[&format!("list_lock/{name}")]
}

/// `dds` times dd to each of so many disks.
fn dd(kernel: &str, disks: u64, dds: u64, machine: &str, seconds: u64) -> Recording {
    let mut text = format!(
        r#"
lowmark = 1
[workload]
name = "jbod"
end = {{ after = "{seconds}s" }}
[kernel]
use = "{kernel}"
[machine]
description = "disks of data sheets"
reserved = "128M"
occupied = "64M"
hz = 1000
{machine}
"#
    );
    for disk in 0..disks {
        write!(
            text,
            r#"
device.disk{disk} = {{
  kind = "hdd", size = "500GB", position_read = "8.9ms", position_write = "8.9ms",
  command_read = "62us", command_write = "62us", rate = "54MB/s", skip_pages = 64,
}}
filesystem.fs{disk} = {{ kind = "xfs", device = "disk{disk}" }}
"#
        )
        .expect("text");
    }
    for disk in 0..disks {
        write!(
            text,
            r#"
[file.out{disk}_]
copies = {dds}
fs = "fs{disk}"
exists = false
[task.dd{disk}]
processes = {dds}
run = [
  {{ sleep = {{ uniform = ["0ms", "100ms"] }} }},
  {{ repeat = "forever", do = [{{ append = "out{disk}_$idx", block = "1M" }}] }},
]
"#
        )
        .expect("text");
    }
    record(text)
}

/// f758eeabeb96 prints `/proc/lock_stat` of 100 dd on each of ten disks and 6 GB: with one lock for all lists 44,433 of
/// 886,792 acquisitions found it taken, with one for each disk 11,657 of 527,918. For how long is not in print, nor
/// with how many CPUs. Here it is the first minute: the writers of a disk, who differ in nothing, then fall into step, and
/// meet more often, with locks of their disks most of all (4.7 % after ten minutes, with one lock 5.7 %).
#[test]
fn writers_of_ten_disks_meet_as_often_as_lock_stat_says() {
    let machine = "ram = \"6G\"\ncpus = 8";
    let run = |kernel| {
        let recording = dd(kernel, 10, 100, machine, 60);
        let contentions = lock(&recording, "contentions");
        let share = contentions as f64 / lock(&recording, "acquisitions") as f64;
        (contentions as f64, share)
    };
    let (one, each) = (run("v2.6.39"), run("v2.6.39+wb-list-lock"));
    let near = |share: f64, print: f64| share > print / 1.6 && share < print * 1.6;
    assert!(near(one.1, 44_433.0 / 886_792.0), "{one:?}");
    assert!(near(each.1, 11_657.0 / 527_918.0), "{each:?}");
    // To 26 % in print; half of that gain is to 63 %.
    assert!(each.0 / one.0 < 0.63, "{each:?} of {one:?}");
}

/// With one CPU a spinlock is never contended.
#[test]
fn nobody_meets_anybody_on_one_cpu() {
    let machine = "ram = \"1G\"\ncpus = 1";
    for kernel in ["v2.6.37", "v6.1"] {
        let recording = dd(kernel, 2, 4, machine, 10);
        assert!(lock(&recording, "acquisitions") > 100, "{kernel}");
        assert_eq!(lock(&recording, "contentions"), 0, "{kernel}");
        assert_eq!(lock(&recording, "waittime_ns"), 0, "{kernel}");
    }
}

/// One task makes files of a page and syncs them.
fn small_files(kernel: &str, files: u64, costs: &str) -> Recording {
    record(format!(
        r#"
lowmark = 1
[workload]
name = "small-files"
[kernel]
use = "{kernel}"
[machine]
description = "a disk"
ram = "1G"
cpus = 2
{costs}
device.sda = {{
  kind = "ssd", size = "50GB", position_read = "0ns", position_write = "0ns",
  command_read = "1us", command_write = "1us", rate = "500MB/s",
}}
filesystem.data = {{ kind = "xfs", device = "sda" }}
[fileset.new]
files = {files}
size = "4K"
exists = false
[task.main]
run = [{{ repeat = {files}, do = [{{ write = "new" }}] }}, {{ sync = true }}]
"#
    ))
}

/// A file takes it when its first page is dirtied, when its turn begins and when it ends, and up to 2.6.38 once more
/// when its state is looked at. A round takes it once more and finds no more files, and so does the next one.
#[test]
fn a_file_takes_it_so_often_and_a_round_holds_it_for_all_its_files() {
    let files = 40;
    for (kernel, each) in [("v2.6.38", 4), ("v2.6.39", 3), ("v3.1", 3), ("v6.18", 3)] {
        let costs = "costs = { list_lock = \"300ns\", move_inode = \"70ns\" }";
        let recording = small_files(kernel, files, costs);
        let acquisitions = each * files + 2;
        assert_eq!(lock(&recording, "acquisitions"), acquisitions, "{kernel}");
        let hold = acquisitions * 300 + files * 70;
        assert_eq!(lock(&recording, "holdtime_ns"), hold, "{kernel}");
        assert_eq!(
            lock(&recording, "holdtime_max_ns"),
            300 + files * 70,
            "{kernel}"
        );
    }
}

/// What a file costs is paid by who makes it and by who writes it.
#[test]
fn files_cost_their_makers_and_their_writers() {
    let system = |costs: &str, name: &str| {
        let recording = small_files("v3.2", 40, costs);
        let tasks = recording.tasks.iter();
        let of = tasks.filter(|task| task.name.starts_with(name));
        of.map(|task| task.system_ns).sum::<u64>()
    };
    let costly = "costs = { create = \"20us\", write_inode = \"10us\" }";
    for (name, each) in [("main", 20_000), ("flush", 10_000)] {
        let more = system(costly, name) - system("", name);
        // And a switch more or less.
        assert!(more.abs_diff(40 * each) <= 10_000, "{name}: {more} ns");
    }
}

/// Where there are no files, nobody takes it.
#[test]
fn without_files_there_is_no_such_lock() {
    let recording = run(
        &lowmark_model::example_scenario(),
        &Options {
            events: false,
            check_every: 0,
        },
        &mut |_| {},
    )
    .expect("the model can run it");
    let mut counters = recording.counters.keys();
    assert!(!counters.any(|name| name.starts_with("list_lock/")));
}

//! Devices as a workload sees them: what striping over several disks gives, and what it does not.

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::{Event, Field, Kind, Outcome, Recording};
use lowmark_spec::Scenario;

/// A workload on a machine with one file system on the device that `fields` describe.
fn scenario(fields: &str, body: &str) -> Scenario {
    let kernel = if body.contains("[kernel]") {
        ""
    } else {
        "[kernel]\nuse = \"v3.6\""
    };
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "devices"
[machine]
ram = "128M"
cpus = 2
description = "small"
device.sda = {{
  size = "20G", position_read = "8ms", position_write = "4ms", command_read = "60us",
  command_write = "0ns", {fields}
}}
filesystem.data = {{ kind = "xfs", device = "sda" }}
{kernel}
{body}
"#
    );
    common::scenarios(text).remove(0)
}

fn record(fields: &str, body: &str, check: bool) -> Recording {
    let options = Options {
        events: false,
        check_every: u64::from(check),
    };
    let recording = run(&scenario(fields, body), &options, &mut |_| {});
    let recording = recording.expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed);
    recording
}

const DISK: &str = "kind = \"hdd\", rate = \"60MB/s\", skip_pages = 64,";

/// One writer of `size`, and the time until all of it is on the device.
fn stream(size: &str) -> String {
    format!(
        "[file.out]\nexists = false\n[task.dd]\nrun = [{{ append = \"out\", block = \"1M\", count = \"{size}/1M\" }}, {{ fsync = \"out\" }}]\n"
    )
}

#[test]
fn a_stream_is_as_fast_as_all_members_together() {
    let time =
        |members: &str| record(&format!("{DISK} {members}"), &stream("1G"), false).elapsed_ns;
    let (one, four) = (time(""), time("members = 4, chunk = \"512K\""));
    let ratio = one as f64 / four as f64;
    assert!((3.5..=4.0).contains(&ratio), "{ratio}");
}

#[test]
fn what_fits_a_chunk_is_on_one_member() {
    let few = |chunk: &str| {
        let fields = format!("{DISK} members = 4, chunk = \"{chunk}\"");
        record(&fields, &stream("1M"), true).counters["sda/writes"]
    };
    // Requests have 512 KiB at most, and end where a chunk ends.
    assert_eq!((few("1M"), few("512K"), few("64K")), (2, 2, 4));
}

#[test]
fn nothing_is_lost_on_many_small_stripes() {
    let body = stream("8M");
    let recording = record(&format!("{DISK} members = 12, chunk = \"4K\""), &body, true);
    let written = recording.counters["nr_written"] + recording.state["nr_dirty"];
    assert_eq!(recording.counters["nr_dirtied"], written);
    assert_eq!(
        recording.counters["sda/sectors_written"],
        recording.counters["nr_written"] * 8
    );
}

/// Memory sticks: a stream is as fast as the flash; pages here and there cost a copied block each.
#[test]
fn a_stick_collapses_under_scattered_writes() {
    let stick = "kind = \"ssd\", rate = \"25MB/s\", rate_write = \"7MB/s\", erase_block = \"4M\", \
                 open_blocks = 2, max_request = \"120K\", queue_depth = 1,";
    let rate = |body: &str| {
        let recording = record(stick, body, true);
        recording.counters["nr_written"] * 4096 * 1_000_000_000 / recording.elapsed_ns
    };
    let stream = rate(&stream("32M"));
    assert!((6_000_000..=7_000_000).contains(&stream), "{stream}");
    // The elevator sorts them: each of the sixteen erase blocks is closed once, for four pages or so.
    let scattered = rate(
        "[file.old]\nkind = \"random\"\nsize = \"64M\"\n[task.writer]\nrun = [\
         { write = \"old\", block = \"4K\", order = \"random\", count = 64 }, { fsync = \"old\" }]\n",
    );
    assert!(scattered * 100 < stream, "{scattered}");
}

/// What looks of two writers see of the dirty pages of their disk from two seconds after the first on: the set point of
/// the disk, and the median and the 95th percentile of its dirty pages. 128 MB each, to the disk of 20 MiB/s of
/// `writers.rs`, with `dirty_bytes` of 64 MiB, 6.18.
fn shares(fields: &str) -> [u64; 3] {
    let machine = include_str!("common/slow-disk.toml");
    let machine = machine.replace(
        "[machine.filesystem",
        &format!("{fields}\n[machine.filesystem"),
    );
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "shares"
[kernel]
use = "v6.18"
sysctl = {{ dirty_bytes = 67108864, dirty_background_bytes = 16777216 }}
[file.out]
fs = "slow"
exists = false
copies = 2
[task.writer]
processes = 2
run = [{{ append = "out$idx", block = "64K", count = 2048 }}]
{machine}"#
    );
    let options = Options {
        events: true,
        check_every: 0,
    };
    let recording =
        run(&common::scenarios(text)[0], &options, &mut |_| {}).expect("the model can run it");
    let events = recording.events.iter();
    let looks: Vec<Event> = events
        .filter(|event| event.kind == Kind::BalanceDirtyPages)
        .collect();
    let settled = looks[0].time_ns + 2_000_000_000;
    let sorted = |field| {
        let later = looks.iter().filter(|look| look.time_ns > settled);
        let mut values: Vec<u64> = later.filter_map(|look| look.get(field)).collect();
        values.sort_unstable();
        values
    };
    let (points, dirty) = (sorted(Field::BdiSetpoint), sorted(Field::BdiDirty));
    let at = |values: &[u64], percent| values[values.len() * percent / 100];
    [at(&points, 50), at(&dirty, 50), at(&dirty, 95)]
}

/// The medians of three guests of 6.18, with strictlimit of two; their medians of dirty pages are up to 3 % apart. The
/// thresholds are 4096 and 16384 pages, so that the set point is 13312, and a fifth of it for a fifth of the upper one,
/// which is 3276. Without strictlimit that is no more than a pull.
#[test]
fn max_ratio_and_strictlimit_bound_the_dirty_pages_of_a_device() {
    for (fields, guests) in [
        ("", [13_311, 15_152, 16_432]),
        ("max_ratio = 20", [2_661, 15_640, 16_256]),
        ("max_ratio = 20\nstrictlimit = true", [2_661, 3_040, 3_344]),
    ] {
        let model = shares(fields);
        assert_eq!(model[0], guests[0], "{fields}");
        for figure in [1, 2] {
            let off = model[figure].abs_diff(guests[figure]) * 100 / guests[figure];
            assert!(off < 5, "{fields}: {model:?}, guests {guests:?}");
        }
    }
}

/// Two writers to two disks: from 3.6 on the shares of the disks are what both write now.
#[test]
fn later_kernels_forget_what_was_written_before() {
    let body = |kernel: &str, fields: &str| {
        format!(
            r#"
[machine.device.sdb]
kind = "ssd"
size = "2G"
position_read = "0ns"
position_write = "0ns"
command_read = "20us"
command_write = "20us"
rate = "60MB/s"
{fields}
[machine.filesystem.other]
kind = "xfs"
device = "sdb"
[kernel]
use = "{kernel}"
[file.a]
exists = false
[file.b]
exists = false
fs = "other"
[task.one]
run = [{{ append = "a", block = "64K", count = 4000 }}]
[task.two]
run = [{{ append = "b", block = "64K", count = 4000 }}]
"#
        )
    };
    let looks = |kernel: &str, fields: &str| {
        let options = Options {
            events: true,
            check_every: 0,
        };
        let scenario = scenario(DISK, &body(kernel, fields));
        let recording = run(&scenario, &options, &mut |_| {}).expect("the model can run it");
        let looks = recording.events.iter();
        looks
            .filter(|event| event.kind == Kind::BalanceDirtyPages)
            .collect::<Vec<Event>>()
    };
    for (kernel, forgets) in [("v3.5", false), ("v3.6", true), ("v6.18", true)] {
        let same = looks(kernel, "written_share = 100") == looks(kernel, "");
        assert_eq!(same, forgets, "{kernel}");
    }
}

#[test]
fn shares_in_what_was_written_are_parts_of_a_whole() {
    let body = "[machine.device.sdb]\nkind = \"hdd\"\nsize = \"1G\"\nposition_read = \"1ms\"\n\
                position_write = \"1ms\"\ncommand_read = \"0ns\"\ncommand_write = \"0ns\"\n\
                rate = \"60MB/s\"\nwritten_share = 60\n[task.idle]\nrun = [{ sleep = \"1ms\" }]\n";
    let checked = |share: &str| {
        let scenario = scenario(&format!("{DISK} written_share = {share},"), body);
        lowmark_model::check(&scenario).map_err(|refusal| refusal.to_string())
    };
    assert_eq!(checked("40"), Ok(()));
    let refusal = checked("41").expect_err("101 of 100");
    assert!(refusal.contains("adds up to 101 %"), "{refusal}");
}

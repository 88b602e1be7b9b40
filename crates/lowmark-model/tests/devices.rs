//! Devices as a workload sees them: what striping over several disks gives, and what it does not.

mod common;

use lowmark_model::{Options, run};
use lowmark_record::{Event, Field, Kind, Outcome, Recording};
use lowmark_spec::Scenario;

/// A workload on a machine with one file system on the device that `fields` describe.
fn scenario(fields: &str, body: &str) -> Scenario {
    let kernel = match body.contains("[kernel]") {
        true => "",
        false => "[kernel]\nuse = \"v3.6\"",
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

/// Two writers, one to each of two disks, and the dirty pages of each disk at the end.
fn two_disks(fields: &str, kernel: &str) -> Recording {
    let body = format!(
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
run = [{{ append = "a", block = "64K", count = 10000 }}]
[task.two]
run = [{{ append = "b", block = "64K", count = 10000 }}]
"#
    );
    let mut scenario = scenario(DISK, &body);
    scenario.workload.end = lowmark_spec::workload::End::After(10_000_000_000);
    let options = Options {
        events: true,
        check_every: 0,
    };
    run(&scenario, &options, &mut |_| {}).expect("the model can run it")
}

/// Looks of writers to the second disk after the first two seconds.
fn of_second(recording: &Recording) -> Vec<Event> {
    let of_second = |event: &Event| {
        let name = event.get(Field::Bdi)?;
        (recording.events.names.text(name) == "8:16").then_some(())
    };
    let seen = recording.events.iter().filter(|event| {
        event.kind == Kind::BalanceDirtyPages
            && event.time_ns > 2_000_000_000
            && of_second(event).is_some()
    });
    seen.collect()
}

fn of(looks: &[Event], field: Field) -> Vec<u64> {
    let mut values: Vec<u64> = looks.iter().filter_map(|look| look.get(field)).collect();
    values.sort_unstable();
    values
}

#[test]
fn max_ratio_and_strictlimit_bound_the_dirty_pages_of_a_device() {
    let looks = |fields| of_second(&two_disks(fields, "v6.18"));
    let (free, bounded) = (looks(""), looks("max_ratio = 5"));
    for look in &bounded {
        let [all, own] = [Field::Setpoint, Field::BdiSetpoint].map(|field| look.get(field));
        assert!(own.unwrap() <= all.unwrap() / 20 + 1, "{look:?}");
    }
    // Without strictlimit that is no more than a pull.
    let median = |looks| {
        let values = of(looks, Field::BdiDirty);
        values[values.len() / 2]
    };
    let (free, bounded) = (median(&free), median(&bounded));
    assert!(bounded * 10 < free * 9, "{bounded} {free}");
    let strict = looks("max_ratio = 5\nstrictlimit = true");
    let strict = of(&strict, Field::BdiDirty).last().copied().unwrap_or(0);
    let thresh = two_disks("", "v6.18").state["nr_dirty_threshold"];
    // What is let through at once comes on top of the share, up to the end of a folio of 64 KiB.
    assert!(strict <= thresh / 20 + 64 + 16, "{strict} of {thresh}");
}

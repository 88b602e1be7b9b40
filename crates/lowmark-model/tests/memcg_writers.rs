//! Writers in memory cgroups: each group is a domain of dirty pages, with limits that follow from its memory.

mod common;

use lowmark_model::{Options, run};
use lowmark_record::{Event, Field, Kind, Outcome, Recording};

/// A writer in a group with 100 MB beside one that has no limit, on 1 GB and a disk of 80 MiB/s.
fn record(kernel: &str, seconds: u64) -> Recording {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "memcg-writers"
end = {{ after = "{seconds}s" }}
[machine]
ram = "1G"
cpus = 2
hz = 250
reserved = "0B"
occupied = "64M"
description = "1 GB"
device.sda = {{
  kind = "hdd", size = "500GB", position_read = "0ns", position_write = "0ns",
  command_read = "0ns", command_write = "0ns", rate = "80M/s", elevator = "deadline",
}}
filesystem.data = {{ kind = "ext4", device = "sda" }}
[kernel]
use = "{kernel}"
[cgroup.box]
max = "100M"
[file.boxed]
exists = false
[file.free]
exists = false
[task.boxed]
cgroup = "box"
run = [{{ repeat = "forever", do = [{{ append = "boxed", block = "64K" }}] }}]
[task.free]
run = [{{ repeat = "forever", do = [{{ append = "free", block = "64K" }}] }}]
"#
    );
    let options = Options {
        events: true,
        check_every: 0,
    };
    let recording =
        run(&common::scenarios(text)[0], &options, &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    recording
}

/// Looks at which a writer of the group, or of no group, was held back by limits that the group has, or all of memory;
/// the group's are below `LIMIT`.
fn looks(recording: &Recording, cgroup: u64) -> Vec<Event> {
    let of = |event: &Event| {
        event.kind == Kind::BalanceDirtyPages && event.get(Field::CgroupIno) == Some(cgroup)
    };
    recording.events.iter().filter(of).collect()
}

const ROOT: u64 = 1;
const BOX: u64 = 2;
/// Pages of 100 MB.
const LIMIT: u64 = 25_600;

fn get(event: &Event, field: Field) -> u64 {
    event.get(field).expect("a field of the event")
}

/// The group's memory is full of its file, so that its limits are 819/4096 and 409/4096 of 100 MB and of what little it
/// has free: 5118 and 2556 pages. Its writer runs free up to half way between them, 3837 pages, the set point is half
/// way from there to the upper limit, 4477. The other writer is held where all of memory is.
#[test]
fn a_group_is_held_to_its_part_of_its_memory() {
    for kernel in ["v6.1", "v6.18"] {
        let recording = record(kernel, 20);
        let (boxed, free) = (looks(&recording, BOX), looks(&recording, ROOT));
        // The first look that is held back, at most as many pages late as a writer dirties between two looks.
        let beyond = get(&boxed[0], Field::Dirty) - 3837;
        assert!((1..=64).contains(&beyond), "{kernel}: {beyond}");
        let settled = boxed.iter().filter(|look| look.time_ns > 10_000_000_000);
        // Most of its looks are held back by the limits of all memory, which are exceeded as well.
        let of_group: Vec<&Event> = settled
            .filter(|look| get(look, Field::Limit) < LIMIT)
            .collect();
        assert!(of_group.len() >= 10, "{kernel}: {} looks", of_group.len());
        for look in of_group {
            let (limit, setpoint) = (get(look, Field::Limit), get(look, Field::Setpoint));
            assert!((5118..=5128).contains(&limit), "{kernel}: {look:?}");
            assert!((4467..=4487).contains(&setpoint), "{kernel}: {look:?}");
            let dirty = get(look, Field::Dirty);
            assert!((3838..=limit + 64).contains(&dirty), "{kernel}: {look:?}");
        }
        let first = &free[0];
        let (limit, setpoint) = (get(first, Field::Limit), get(first, Field::Setpoint));
        let beyond = get(first, Field::Dirty) - (2 * setpoint - limit);
        assert!(
            limit > LIMIT && (1..=64).contains(&beyond),
            "{kernel}: {beyond}"
        );
    }
}

/// Without domains nobody asks what the group has.
#[test]
fn without_domains_all_are_held_to_the_limits_of_all_memory() {
    let recording = record("v6.18+cgroup_writeback=off", 5);
    assert!(looks(&recording, BOX).is_empty());
    let looks = looks(&recording, ROOT);
    assert!(!looks.is_empty());
    assert!(looks.iter().all(|look| get(look, Field::Limit) > LIMIT));
}

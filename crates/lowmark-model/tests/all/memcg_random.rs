//! Trees of memory cgroups that nobody chose, with every invariant checked after every event of each fifth load, and after
//! every eighth of the others: limits, protection and swap limits at any depth, tasks in the leaves, and now and then
//! somebody who asks for memory to be reclaimed.

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::Outcome;
use lowmark_spec::random::Stream;

/// Loads.
const LOADS: u64 = 30;

/// Versions with different rules for walks, targets and batches, and for generations.
const VERSIONS: [&str; 13] = [
    "v4.14",
    "v4.18",
    "v5.3",
    "v5.7",
    "v6.1",
    "v6.5",
    "v6.7",
    "v6.11",
    "v6.18",
    "v6.1,lru_gen.enabled=7",
    "v6.5,lru_gen.enabled=7",
    "v6.12,lru_gen.enabled=7",
    "v6.18,lru_gen.enabled=7",
];

/// A field, or nothing.
fn maybe(name: &str, kib: [u64; 2], stream: &mut Stream) -> String {
    match stream.below(3) {
        0 => format!("{name} = \"{}K\"\n", stream.between(kib[0], kib[1])),
        _ => String::new(),
    }
}

/// Groups, each in one that was there before or in none, and a task in each that has none inside it.
fn load(seed: u64) -> String {
    let mut stream = Stream::new(seed, "groups", 0);
    let version = VERSIONS[stream.below(VERSIONS.len() as u64) as usize];
    let recursive = stream.below(2) == 0;
    let count = stream.between(1, 6);
    let mut parents = Vec::new();
    let mut text = String::new();
    for group in 0..count {
        let parent = (group > 0 && stream.below(4) > 0).then(|| stream.below(group));
        text += &format!("[cgroup.g{group}]\n");
        if let Some(parent) = parent {
            text += &format!("parent = \"g{parent}\"\n");
        }
        parents.push(parent);
        text += &maybe("max", [2500, 9000], &mut stream);
        text += &maybe("high", [2500, 9000], &mut stream);
        text += &maybe("low", [100, 6000], &mut stream);
        if version != "v4.14" {
            text += &maybe("min", [100, 900], &mut stream);
        }
        text += &maybe("swap_max", [0, 12000], &mut stream);
    }
    let leaves = (0..count).filter(|&group| !parents.contains(&Some(group)));
    for leaf in leaves {
        let (kib, count) = (stream.between(1000, 7000), stream.between(10, 900));
        let kind = ["anon-private", "anon-shared"][stream.below(2) as usize];
        // The file came with 5.19.
        let asked = match stream.below(2) {
            0 if version.starts_with("v6") => format!(
                "{{ reclaim = \"{}K\", cgroup = \"g{}\" }},",
                stream.between(4, 4000),
                stream.below(count.min(leaf + 1))
            ),
            _ => String::new(),
        };
        text += &format!(
            r#"
[file.f{leaf}]
size = "{}K"
[task.t{leaf}]
cgroup = "g{leaf}"
run = [
  {{ map = "m", kind = "{kind}", size = "{kib}K" }},
  {{ touch = "m", access = "write" }},
  {{ read = "f{leaf}" }},
  {asked}
  {{ touch = "m", access = "write", order = "random", count = {count} }},
]
"#,
            stream.between(64, 4000)
        );
    }
    format!(
        r#"
lowmark = 1
[workload]
name = "random-groups"
memory_recursiveprot = {recursive}
[machine]
ram = "22M"
cpus = 2
description = "small"
device.sda = {{
  kind = "ssd", size = "1G", position_read = "60us", position_write = "0ns",
  command_read = "20us", command_write = "20us", page = "4us",
}}
swap = {{ device = "sda", start = "512M", size = "64M" }}
filesystem.data = {{ kind = "ext4", device = "sda" }}
[kernel]
use = "{version}"
{text}
"#
    )
}

#[test]
fn whatever_the_groups_every_page_and_slot_is_accounted_for() {
    let mut seen = [0; 3];
    for seed in 0..LOADS {
        let text = load(seed);
        let scenario = common::scenarios(text.clone()).remove(0);
        // What is broken stays so, and a look at everything takes longer than many events.
        let options = Options {
            events: false,
            check_every: if seed % 5 == 0 { 1 } else { 8 },
        };
        let recording = run(&scenario, &options, &mut |_| {}).expect("the model can run it");
        let ended = matches!(
            recording.outcome,
            Outcome::Completed | Outcome::OutOfMemory { .. }
        );
        assert!(ended, "{:?}:\n{text}", recording.outcome);
        let counted = |key: &str| {
            let counters = recording.counters.iter();
            let of_groups =
                counters.filter(|(name, _)| name.starts_with("cgroup/") && name.ends_with(key));
            of_groups.map(|(_, count)| count).sum::<u64>() > 0
        };
        for (at, key) in [
            "memory.events.low",
            "memory.events.max",
            "memory.stat.pgsteal",
        ]
        .iter()
        .enumerate()
        {
            seen[at] += u32::from(counted(key));
        }
    }
    // Loads without pressure would prove nothing.
    assert!(seen[0] >= 1 && seen[1] >= 8 && seen[2] >= 15, "{seen:?}");
}

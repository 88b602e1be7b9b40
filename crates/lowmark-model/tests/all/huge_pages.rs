//! Huge pages of private memory: what a fault gets, what reclaim makes of them, what becomes of parts. Every invariant is
//! checked after every event or nearly so.

use crate::common;
use lowmark_model::{Options, run};
use lowmark_record::{Event, Field, Kind, Outcome, Recording};

/// A workload on a kernel, on a machine with huge pages and so much memory.
fn text(kernel: &str, ram: &str, body: &str) -> String {
    format!(
        r#"
lowmark = 1
[workload]
name = "huge"
title = "huge"
[machine]
ram = "{ram}"
cpus = 2
thp = true
description = "small"
device.sda = {{
  kind = "ssd", rotational = false, size = "2G", position_read = "100us", position_write = "0ns",
  command_read = "20us", command_write = "20us", page = "8us",
}}
swap = [{{ device = "sda", size = "512M" }}]
[kernel]
use = ["{kernel}"]
{body}
"#
    )
}

fn record(kernel: &str, ram: &str, check_every: u64, body: &str) -> Recording {
    completed(kernel, text(kernel, ram, body), check_every)
}

fn completed(kernel: &str, text: String, check_every: u64) -> Recording {
    let scenarios = common::scenarios(text);
    let options = Options {
        events: false,
        check_every,
    };
    let recording = run(&scenarios[0], &options, &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    recording
}

fn counters<const N: usize>(recording: &Recording, names: [&str; N]) -> [u64; N] {
    names.map(|name| recording.counters[name])
}

/// So much memory written twice.
fn twice(size: &str) -> String {
    format!(
        r#"
[task.main]
run = [
  {{ map = "m", kind = "anon-private", size = "{size}" }},
  {{ touch = "m", access = "write", passes = 2 }},
]
"#
    )
}

#[test]
fn memory_that_fits_is_all_huge_pages() {
    for kernel in ["v2.6.38", "v3.14", "v4.4", "v4.6", "v5.4", "v6.1", "v6.18"] {
        let recording = record(kernel, "512M", 1, &twice("64M"));
        let names = [
            "thp_fault_alloc",
            "thp_fault_fallback",
            "pgfault",
            "pswpout",
        ];
        assert_eq!(counters(&recording, names), [32, 0, 32, 0], "{kernel}");
    }
}

#[test]
fn what_is_no_multiple_of_2_mib_ends_in_single_pages() {
    let recording = record("v6.18", "512M", 1, &twice("7M"));
    let names = ["thp_fault_alloc", "pgfault"];
    assert_eq!(counters(&recording, names), [3, 3 + 256]);
}

#[test]
fn settings_say_who_gets_huge_pages() {
    for (kernel, expected) in [
        ("v6.18,thp.enabled=never", 0),
        ("v6.18,thp.enabled=madvise", 0),
        ("v6.18,thp.enabled=always", 32),
        ("v2.6.37", 0),
    ] {
        let recording = record(kernel, "512M", 100, &twice("64M"));
        let found = recording.counters.get("thp_fault_alloc").copied();
        assert_eq!(found.unwrap_or(0), expected, "{kernel}");
    }
}

#[test]
fn what_is_swapped_out_goes_in_parts_or_whole() {
    for (kernel, whole) in [
        ("v4.4", false),
        ("v4.12", false),
        ("v4.13", false),
        ("v4.14", true),
        ("v6.1", true),
        ("v6.18", true),
    ] {
        let recording = record(kernel, "512M", 997, &twice("600M"));
        let counter = |name: &str| recording.counters.get(name).copied().unwrap_or(0);
        assert!(counter("pswpout") > 10_000, "{kernel}");
        let split = counter("thp_split") + counter("thp_split_page");
        if whole {
            assert!(counter("thp_swpout") > 10 * split.max(1), "{kernel}")
        } else {
            assert!(split > 20 && counter("thp_swpout") == 0, "{kernel}")
        }
    }
}

#[test]
fn reads_of_what_was_never_written_share_one_huge_page() {
    let body = r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "64M" },
  { touch = "m", access = "read" },
  { touch = "m", access = "write" },
]
"#;
    let names = ["thp_zero_page_alloc", "thp_fault_alloc", "thp_split_pmd"];
    for (kernel, expected) in [
        ("v4.19", [1, 32, 0]),
        ("v6.1", [1, 0, 32]),
        ("v6.18", [1, 32, 0]),
    ] {
        let recording = record(kernel, "512M", 1, body);
        assert_eq!(counters(&recording, names), expected, "{kernel}");
    }
}

/// Half of each huge page is unmapped, and the rest stays.
const HOLES: &str = r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "64M" },
  { touch = "m", access = "write" },
  { unmap = "m", length = "1M", every = "2M" },
]
"#;

#[test]
fn what_is_unmapped_is_free_at_once_or_when_memory_is_short() {
    let recording = record("v4.4", "512M", 1, HOLES);
    assert_eq!(
        counters(&recording, ["thp_split", "thp_fault_alloc"]),
        [32, 32]
    );
    for kernel in ["v4.5", "v6.1", "v6.18"] {
        let recording = record(kernel, "512M", 1, HOLES);
        let names = ["thp_split_pmd", "thp_deferred_split_page", "thp_split_page"];
        assert_eq!(counters(&recording, names), [32, 32, 0], "{kernel}");
    }
}

/// To 5.4 a huge page that is unmapped as a whole counts as one that waits to be split, as in guests of 4.15 and 5.4.
#[test]
fn what_is_unmapped_as_a_whole_waits_to_be_split_to_5_4() {
    let body = r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "64M" },
  { touch = "m", access = "write" },
  { unmap = "m" },
]
"#;
    for (kernel, waiting) in [("v4.5", 32), ("v5.4", 32), ("v5.5", 0), ("v6.18", 0)] {
        let recording = record(kernel, "512M", 1, body);
        let names = [
            "thp_fault_alloc",
            "thp_deferred_split_page",
            "thp_split_page",
        ];
        assert_eq!(counters(&recording, names), [32, waiting, 0], "{kernel}");
    }
}

#[test]
fn a_shrinker_splits_what_is_partly_mapped() {
    let body = r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "128M" },
  { touch = "m", access = "write" },
  { unmap = "m", length = "1M", every = "2M" },
  { map = "n", kind = "anon-private", size = "480M" },
  { touch = "n", access = "write", passes = 2 },
]
"#;
    // Whoever is in the way of a split has the huge page go round its list once more (5.19).
    for kernel in ["v4.5", "v6.1", "v6.18"] {
        let recording = record(kernel, "512M", 997, body);
        let [waiting, split] = counters(&recording, ["thp_deferred_split_page", "thp_split_page"]);
        assert!(split >= 32, "{kernel}: {split} split");
        // To 6.1 those that are split while they are mapped as a whole are counted as well.
        match kernel {
            "v6.18" => assert_eq!(waiting, 64),
            _ => assert!((64..=64 + split).contains(&waiting), "{kernel}: {waiting}"),
        }
    }
}

#[test]
fn advice_says_who_gets_huge_pages() {
    let body = r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "64M" },
  { advise = "m", advice = "hugepage", length = "16M" },
  { advise = "m", advice = "nohugepage", offset = "16M", length = "16M" },
  { touch = "m", access = "write" },
]
"#;
    for (kernel, expected) in [("v6.18", 8 + 16), ("v6.18,thp.enabled=madvise", 8)] {
        let recording = record(kernel, "512M", 1, body);
        assert_eq!(recording.counters["thp_fault_alloc"], expected, "{kernel}");
    }
}

#[test]
fn khugepaged_makes_huge_pages_of_what_is_there() {
    let body = r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "16M", advice = "nohugepage" },
  { touch = "m", access = "write" },
  { advise = "m", advice = "hugepage" },
  { sleep = "2s" },
  { touch = "m", access = "read" },
]
"#;
    for kernel in ["v3.14", "v4.4", "v6.18"] {
        let text = format!("{kernel},khugepaged.scan_sleep_millisecs=100");
        let recording = record(&text, "512M", 7, body);
        let names = ["thp_collapse_alloc", "thp_fault_alloc", "pgfault"];
        assert_eq!(counters(&recording, names), [8, 0, 4096], "{kernel}");
    }
}

/// khugepaged brings back the pages of a block that were swapped out before it makes the block huge; no task has faulted
/// (`do_swap_page`, whose caller `handle_mm_fault` counts faults).
#[test]
fn swap_ins_of_khugepaged_are_no_faults_of_a_task() {
    let body = r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "2M", advice = "nohugepage" },
  { touch = "m", access = "write" },
  { advise = "m", advice = "pageout", length = "128K" },
  { touch = "m", access = "read", offset = "128K" },
  { advise = "m", advice = "hugepage" },
  { sleep = "2s" },
]
"#;
    for kernel in ["v5.4", "v6.18", "v6.18,lru_gen.enabled=7"] {
        let text = format!("{kernel},khugepaged.scan_sleep_millisecs=100");
        let recording = record(&text, "512M", 1, body);
        let names = ["thp_collapse_alloc", "pswpout", "pgfault"];
        assert_eq!(counters(&recording, names), [1, 32, 512], "{kernel}");
    }
}

/// MADV_PAGEOUT takes a huge page as a whole if all of it is in the range, and the reclaimer pays once for it (`swap_huge_page`);
/// of one that is not, it takes pages one by one.
#[test]
fn a_range_is_paged_out_in_huge_pages() {
    let out = |kernel: &str, length: &str, cost: &str| {
        let body = format!(
            r#"
[machine.costs]
swap_huge_page = "{cost}"
[task.main]
run = [
  {{ map = "m", kind = "anon-private", size = "16M" }},
  {{ touch = "m", access = "write" }},
  {{ advise = "m", advice = "pageout", length = "{length}" }},
]
"#
        );
        record(kernel, "512M", 1, &body)
    };
    let names = ["thp_swpout", "thp_split_page", "pswpout"];
    for kernel in ["v5.4", "v6.1", "v6.18", "v6.18,lru_gen.enabled=7"] {
        let whole = out(kernel, "16M", "1us");
        assert_eq!(counters(&whole, names), [8, 0, 4096], "{kernel}");
        let dear = out(kernel, "16M", "5ms");
        let paid = |recording: &Recording| {
            let mut tasks = recording.tasks.iter();
            let main = tasks.find(|task| task.name == "main");
            main.expect("it ran").system_ns
        };
        assert_eq!(paid(&dear) - paid(&whole), 8 * 4_999_000, "{kernel}");
        let part = out(kernel, "3M", "1us");
        assert_eq!(counters(&part, names), [1, 1, 512 + 256], "{kernel}");
    }
}

/// Two blocks of 2 MiB have a hole, at the beginning and in the middle of a region: faults map single pages to the rest of both
/// blocks, and khugepaged leaves the two alone and goes on behind the hole.
#[test]
fn a_huge_page_lies_in_one_vma() {
    let body = |first: &str, last: &str| {
        format!(
            r#"
[task.main]
run = [
  {{ map = "m", kind = "anon-private", size = "16M"{first} }},
  {{ unmap = "m", length = "1M" }},
  {{ unmap = "m", offset = "9M", length = "1M" }},
  {{ touch = "m", access = "write", offset = "1M", length = "8M" }},
  {{ touch = "m", access = "write", offset = "10M" }},
  {last}
]
"#
        )
    };
    let names = ["thp_fault_alloc", "thp_collapse_alloc", "pgfault"];
    for kernel in ["v3.14", "v4.4", "v6.1", "v6.18"] {
        let recording = record(kernel, "512M", 1, &body("", ""));
        assert_eq!(counters(&recording, names), [6, 0, 6 + 512], "{kernel}");
        let text = format!("{kernel},khugepaged.scan_sleep_millisecs=100");
        let advised = r#"{ advise = "m", advice = "hugepage" }, { sleep = "2s" },"#;
        let body = body(r#", advice = "nohugepage""#, advised);
        let recording = record(&text, "512M", 7, &body);
        let singles = 14 * 256;
        assert_eq!(counters(&recording, names), [0, 6, singles], "{kernel}");
    }
}

/// Three times 96 MiB in a group of 64 MiB, on swap without clusters: a third has to go each time. As in the capture
/// `host-thp-memcg-always-96m-64m` of 6.18, all 144 faults get a huge page, and what goes is split. (There a group of version
/// 1 waits for what it writes, and 77 go.)
#[test]
fn a_group_reclaims_for_its_huge_pages() {
    let body = r#"
[cgroup.box]
max = "64M"
[task.main]
cgroup = "box"
run = [
  { repeat = 3, do = [
    { map = "m", kind = "anon-private", size = "96M", advice = "hugepage" },
    { touch = "m", access = "write" },
    { unmap = "m" },
  ] },
]
"#;
    let kernel = "v6.1+thp_swap=split,thp.defrag=always";
    let recording = record(kernel, "1G", 997, body);
    let names = ["thp_fault_alloc", "thp_fault_fallback", "thp_swpout"];
    assert_eq!(counters(&recording, names), [144, 0, 0]);
    let names = ["thp_split_page", "thp_deferred_split_page", "pswpout"];
    let [split, waiting, out] = counters(&recording, names);
    assert!((48..=144).contains(&split), "{split} split");
    assert!(out.abs_diff(512 * split) < 512, "{out} of {split}");
    // Their pages are unmapped one by one to 6.1.
    assert_eq!(waiting, split);
}

/// To 5.8 files take huge pages as they are, where they have clusters; from 5.9 on a huge page is split before its pages go to a
/// file. Partitions take them in all of these.
#[test]
fn huge_pages_are_split_before_they_go_to_a_swap_file() {
    for (kernel, in_file) in [
        ("v5.4", true),
        ("v5.4.223", false),
        ("v5.8", true),
        ("v5.9", false),
        ("v6.18", false),
    ] {
        for file in [false, true] {
            let options = format!("{kernel},thp.enabled=always");
            let text = text(&options, "64M", &twice("96M"));
            let text = text.replace(
                "size = \"512M\"",
                &format!("size = \"512M\", file = {file}"),
            );
            let recording = completed(kernel, text, 997);
            let names = ["thp_swpout", "thp_swpout_fallback", "pswpout"];
            let [whole, split, out] = counters(&recording, names);
            assert_eq!(
                whole > 0,
                in_file || !file,
                "{kernel}, {file}: {whole} whole"
            );
            assert_eq!(
                split > 0,
                file && !in_file,
                "{kernel}, {file}: {split} split"
            );
            assert!(out >= 512 * (whole + split), "{kernel}, {file}: {out}");
        }
    }
}

/// Of each huge page one byte is stored to, in the half that goes. What is left of it holds zeroes: from 6.12 on a split gives that
/// back, too, so that nothing of it comes from swap when it is read.
#[test]
fn a_split_gives_back_what_was_never_written() {
    let body = r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "32M" },
  { touch = "m", access = "write", step = "2M" },
  { unmap = "m", length = "1M", every = "2M" },
  { map = "n", kind = "anon-private", size = "90M", advice = "nohugepage" },
  { touch = "n", access = "write" },
  { repeat = 16, index = "i", do = [
    { touch = "m", access = "read", offset = "i*2M + 1M", length = "1M" },
  ] },
]
"#;
    for (kernel, swapped) in [
        ("v6.1", true),
        ("v6.11", true),
        ("v6.12", false),
        ("v6.18", false),
    ] {
        let kernel = format!("{kernel},thp.enabled=always,min_free_kbytes=1024");
        let recording = record(&kernel, "80M", 997, body);
        let [split, read] = counters(&recording, ["thp_split_page", "pswpin"]);
        assert!(split > 0, "{kernel}: none was split");
        assert_eq!(read > 0, swapped, "{kernel}: {split} split, {read} read");
    }
}

/// What khugepaged tells of: each look at 2 MiB, and what came of those that were worth a huge page. To 6.17 a look says whether a
/// page may be written; to 6.0 it does not say that collapsing failed.
#[test]
fn khugepaged_tells_what_it_saw() {
    let body = r#"
sysctl = { "thp.enabled" = "madvise", "khugepaged.scan_sleep_millisecs" = 100 }
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "16M", advice = "nohugepage" },
  { touch = "m", access = "write", step = "2*PAGE" },
  { advise = "m", advice = "hugepage" },
  { sleep = "2s" },
]
"#;
    for (version, writable) in [("v4.20", true), ("v6.1", true), ("v6.18", false)] {
        let scenarios = common::scenarios(text(version, "128M", body));
        let options = Options {
            events: true,
            check_every: 0,
        };
        let recording = run(&scenarios[0], &options, &mut |_| {}).expect("the model can run it");
        let [collapsed] = counters(&recording, ["thp_collapse_alloc"]);
        assert!(collapsed >= 7, "{version}: {collapsed}");
        let events: Vec<Event> = recording.events.iter().collect();
        let says = |kind: Kind, status: &str| {
            let of_kind = events.iter().filter(|event| event.kind == kind);
            let with = of_kind.filter(|event| {
                let name = event.get(Field::Status).expect("a status");
                recording.events.names.text(name) == status
            });
            with.count() as u64
        };
        for kind in [
            Kind::CollapseHugePage,
            Kind::CollapseHugePageIsolate,
            Kind::KhugepagedScanPmd,
        ] {
            assert_eq!(says(kind, "succeeded"), collapsed, "{version} {kind:?}");
        }
        let again = says(Kind::KhugepagedScanPmd, "page_pmd_mapped");
        assert!(
            again > 0,
            "{version}: what was collapsed is looked at again"
        );
        for event in events
            .iter()
            .filter(|event| event.kind == Kind::KhugepagedScanPmd)
        {
            assert_eq!(event.get(Field::Writable).is_some(), writable, "{version}");
        }
        let looks = events
            .iter()
            .filter(|event| event.kind == Kind::CollapseHugePageIsolate);
        for event in looks {
            assert_eq!(event.get(Field::NoneOrZero), Some(256), "{version}");
            assert_eq!(event.get(Field::Referenced), Some(256), "{version}");
        }
    }
}

/// Where one reclaimer splits a huge page, others cannot look at the mappings of its region, and from 5.19 on leave its pages alone.
/// Parts of a huge page that no task maps are free when reclaim splits it, but do not count as reclaimed.
#[test]
fn parts_that_nobody_maps_do_not_count_as_reclaimed() {
    let body = r#"
sysctl = { "thp.enabled" = "always" }
[task.main]
run = [
  { map = "parts", kind = "anon-private", size = "48M", advice = "hugepage" },
  { touch = "parts", access = "write", step = "2M" },
  { unmap = "parts", length = "1M", every = "2M" },
  { map = "m", kind = "anon-private", size = "90M", advice = "nohugepage" },
  { touch = "m", access = "write", passes = 3 },
]
"#;
    for version in ["v6.1", "v6.18"] {
        let recording = record(version, "128M", 50_000, body);
        let names = ["thp_split_page", "nr_vmscan_write", "pswpout"];
        let [split, written, swapped] = counters(&recording, names);
        assert!(split > 0, "{version}");
        // Each such part is written as far as reclaim can tell, but not to swap.
        let free = written - swapped;
        assert!(free > 0 && free <= 24 * 512, "{version}: {free}");
    }
}

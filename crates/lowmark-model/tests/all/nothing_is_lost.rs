//! Every byte written is at the end on its device, dirty in memory, given up with its file, or counted as lost: for
//! each built-in workload that writes files, made small, on a kernel of each era, with all invariants checked after
//! every event, or every so many where there are many; and again with a device that fails.

use lowmark_model::{Options, run};
use lowmark_record::Outcome;
use lowmark_spec::machine::WriteErrors;
use lowmark_spec::{BuiltIn, Overrides, Scenario, Source, parse};
use std::path::Path;

/// One of each era: throttling by writing, bounded, IO-less, with think time; rules for errors; groups; folios.
const KERNELS: [&str; 7] = ["v2.6.36", "v3.1", "v3.2", "v3.4", "v4.13", "v6.1", "v6.18"];

/// A workload that writes files.
struct Writer {
    name: &'static str,
    /// How it is made small.
    set: &'static [(&'static str, &'static str)],
    /// How much slower its disks are, so that there are fewer events in its time.
    slower: u64,
    /// All invariants are checked after so many events, and at the end.
    check_every: u64,
    kernels: &'static [&'static str],
}

const WRITERS: [Writer; 12] = [
    Writer {
        name: "dd-n",
        set: &[("n", "4"), ("length", "1s")],
        slower: 10,
        check_every: 1,
        kernels: &KERNELS,
    },
    Writer {
        name: "dd-rsync",
        set: &[("n", "3"), ("length", "1s")],
        slower: 10,
        check_every: 1,
        kernels: &KERNELS,
    },
    Writer {
        name: "fs-mark",
        set: &[("file", "200K"), ("rounds", "1"), ("each", "1")],
        slower: 10,
        check_every: 1,
        kernels: &KERNELS,
    },
    Writer {
        name: "dd-kill",
        set: &[("n", "2"), ("times", "1"), ("length", "23200ms")],
        slower: 200,
        check_every: 1,
        kernels: &["v2.6.37", "v3.2"],
    },
    Writer {
        name: "iozone",
        set: &[("size", "15M")],
        slower: 1,
        check_every: 1000,
        kernels: &KERNELS,
    },
    Writer {
        name: "kernbench",
        set: &[
            ("objects", "100"),
            ("passes", "2"),
            ("directories", "8"),
            ("files", "4"),
            ("heap", "1M"),
            ("compile", "5ms"),
        ],
        slower: 1,
        check_every: 1000,
        kernels: &KERNELS,
    },
    Writer {
        name: "mapped-file-write",
        set: &[("rounds", "2"), ("total", "2*RAM")],
        slower: 1,
        check_every: 100,
        kernels: &KERNELS,
    },
    Writer {
        name: "oltp",
        set: &[("clients", "3"), ("transactions", "10")],
        slower: 1,
        check_every: 100,
        kernels: &KERNELS,
    },
    Writer {
        name: "postmark",
        set: &[("high", "65536"), ("transactions", "400"), ("idle", "4M")],
        slower: 1,
        check_every: 100,
        kernels: &KERNELS,
    },
    Writer {
        name: "simoop",
        set: &[
            // On 12 MB some kernels run out of memory, 6.1 by chance, and 6.18 with its windows of 8 MiB on 16 MB.
            ("ram", "24M"),
            ("set", "4M"),
            ("burst", "1M"),
            ("directories", "2"),
            ("per_directory", "3"),
            ("file", "4M"),
            ("warm", "1s"),
            ("run", "4s"),
            ("rw", "4"),
        ],
        slower: 1,
        check_every: 100,
        kernels: &KERNELS,
    },
    Writer {
        name: "stress-highalloc",
        set: &[
            ("ram", "32M"),
            ("attempts", "4"),
            ("settle", "2s"),
            ("rest", "1s"),
            ("system", "20"),
            ("directories", "8"),
            ("files", "4"),
            ("core", "10"),
            ("headers", "20"),
            ("heap", "4M"),
            ("compile", "20ms"),
        ],
        slower: 1,
        check_every: 1000,
        kernels: &KERNELS,
    },
    Writer {
        name: "stutter",
        // 6.18 reads ahead by up to 8 MiB; on less memory that leaves nothing for others now and then, as in guests.
        set: &[
            ("probed", "1M"),
            ("shift", "4K"),
            ("calibrated", "1M"),
            ("ram", "24M"),
        ],
        slower: 1,
        check_every: 1000,
        kernels: &KERNELS,
    },
];

/// Those that write none, and those that the model refuses.
const OTHERS: [&str; 8] = [
    "mapped-file-stream",
    "stutterp",
    "swap-seq-rand",
    "swap-small",
    "thpscale",
    "thpscale-all",
    "usemem",
    "usemem-all",
];

fn source(name: &str) -> Source {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../workloads/{name}.toml"));
    Source {
        name: format!("{name}.toml"),
        text: std::fs::read_to_string(path).expect("a workload"),
    }
}

/// The workload on 12 MB, if `set` does not say another size, with disks that are as large as they are.
fn small(name: &str, kernel: &str, set: &[(&str, &str)]) -> Scenario {
    let machine = [("ram", "12M"), ("reserved", "0B"), ("occupied", "1M")];
    let other = |(key, _): &&(&str, &str)| set.iter().all(|(own, _)| own != key);
    let set = machine.iter().filter(other).chain(set);
    let overrides = Overrides {
        kernels: vec![kernel.to_owned()],
        set: set
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        ..Overrides::default()
    };
    match parse(&source(name), &BuiltIn, &overrides) {
        Ok(mut scenarios) => scenarios.remove(0),
        Err(error) => panic!("{name}: {}", error.render_plain()),
    }
}

#[test]
fn every_built_in_workload_is_in_one_of_the_lists() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    let entries = std::fs::read_dir(directory).expect("the workloads");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let files = paths.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let mut found: Vec<String> = files
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    found.sort();
    let writers = WRITERS.iter().map(|writer| writer.name);
    let mut listed: Vec<&str> = writers.chain(OTHERS).collect();
    listed.sort_unstable();
    assert_eq!(found, listed);
}

fn nothing_is_lost(errors: Option<WriteErrors>) {
    for writer in WRITERS {
        let name = writer.name;
        for kernel in writer.kernels {
            // Where every third write fails, 6.18 runs out of memory with its readahead of up to 8 MiB.
            if errors.is_some() && (name, *kernel) == ("stutter", "v6.18") {
                continue;
            }
            let mut scenario = small(name, kernel, writer.set);
            for area in &mut scenario.machine.swap {
                area.size = 32 << 20;
            }
            for device in &mut scenario.machine.devices {
                device.write_errors = errors;
                device.page_write_ns *= writer.slower;
            }
            let options = Options {
                events: false,
                check_every: writer.check_every,
            };
            let recording = run(&scenario, &options, &mut |_| {}).expect("the model can run it");
            assert_eq!(recording.outcome, Outcome::Completed, "{name} on {kernel}");
            let counter = |name: &str| recording.counters.get(name).copied().unwrap_or(0);
            assert!(
                counter("nr_written") > 0,
                "{name} on {kernel} writes nothing"
            );
            let lost = counter("pages_lost") > 0;
            assert_eq!(lost, errors.is_some(), "{name} on {kernel}");
        }
    }
}

#[test]
fn nothing_is_lost_on_devices_that_are_well() {
    nothing_is_lost(None);
}

/// After the first quarter of a megabyte every third write fails.
#[test]
fn what_devices_do_not_take_is_counted() {
    nothing_is_lost(Some(WriteErrors {
        start: 0,
        size: u64::MAX,
        after: 256 << 10,
        every: 3,
        count: u64::MAX,
    }));
}

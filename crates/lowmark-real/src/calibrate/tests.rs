use super::*;
use lowmark_record::{Outcome, RunInfo, Series, Unit};
use lowmark_spec::workload::{Amount, Op, Stmt, Times};
use lowmark_spec::{BuiltIn, Overrides, Source, parse, parse_machine};

/// Huge pages of a round.
const HUGE: u64 = 32;

/// A recording of probes in which each took so long, in three rounds.
fn recording(probes: &[(&str, u64)]) -> Recording {
    let series = probes.iter().map(|(name, time)| Series {
        name: (*name).to_owned(),
        unit: Unit::Microseconds,
        samples: vec![(1, *time), (2, time * 9), (3, time / 2)],
    });
    Recording {
        run: RunInfo {
            workload: "calibrate".into(),
            params: Vec::new(),
            machine: "m".into(),
            kernel: "6.18".into(),
            backend: "guest".into(),
            lowmark: "0".into(),
            seed: 0,
            left_out: Vec::new(),
        },
        outcome: Outcome::Completed,
        elapsed_ns: 1,
        counters: [
            ("pgmigrate_success".to_owned(), ROUNDS * 2_000),
            ("compact_migrate_scanned".to_owned(), ROUNDS * 30_000),
            ("compact_free_scanned".to_owned(), ROUNDS * 18_000),
            ("thp_fault_alloc".to_owned(), ROUNDS * 2 * HUGE),
            ("thp_swpout".to_owned(), ROUNDS * HUGE),
            (
                "cgroup/group/memory.stat.pgsteal".to_owned(),
                ROUNDS * 2_000,
            ),
        ]
        .into(),
        state: Default::default(),
        tasks: Vec::new(),
        phases: Vec::new(),
        series: series.collect(),
        gauges: Default::default(),
        history: Vec::new(),
        not_modelled: Vec::new(),
        system: None,
        events: Default::default(),
    }
}

fn probes() -> Vec<(&'static str, u64)> {
    vec![
        ("touch", 10 * PAGES * PASSES),
        ("memset", 600 * PAGES),
        ("fault", 510 * PAGES),
        ("fault-and-zero", 1_510 * PAGES),
        ("reclaim", 200 * PAGES),
        ("keep", 120 * LARGE),
        ("reclaim-unmapped", 150 * 2_000),
        // A page takes 700 to unmap, a slot 80, and 400 and 700 more where it has a page.
        ("unmap", 700 * LARGE),
        ("unmap-swapped", 80 * LARGE + 1_100 * (LARGE - 2_000)),
        ("swap-out", 2_170 * PAGES),
        ("swap-read-beside", 9_000_000 + 1_500 * PAGES),
        ("swap-map", 910 * PAGES),
        ("swap-in-beside", 20_000_000 + 9_410 * PAGES),
        ("burn-long", 20_000_000),
        // A mapped page takes 25000, beside 48000 frames that take as long as 1000 pages that are reclaimed.
        ("compact", 25_000 * 2_000 + 200 * 1_000),
        // A call costs 300, a page of it 400.
        ("read-page", 700 * CACHED),
        ("read-many", (300 + 32 * 400) * (CACHED / CACHED_BLOCK)),
        // A page of a hole costs 400 to zero and 900 beside what the call and its copy cost.
        ("read-hole-reverse", (300 / 32 + 400 + 400 + 900) * CACHED),
        // In order it is 300 for all pages but the first of a folio.
        (
            "read-hole",
            (300 / 32 + 400 + 400) * CACHED + 900 * FOLIOS + 300 * (CACHED - FOLIOS),
        ),
        // A new page of a file takes 2300 beside its place in the page cache and its copy.
        ("write-new", (300 / 32 + 400 + 900 + 2_300) * WRITTEN),
        // A path takes 2000 beside its call, 9000 more without inodes; a file 5000 to open, 40000 to make, 30000 to remove.
        ("stat", 2_300 * NAMES),
        ("stat-missing", (2_300 + 9_000) * NAMES),
        ("read-file", (2_300 + 700 + 5_000) * NAMES),
        ("create", (2_300 + 40_000) * NAMES),
        ("delete", (2_300 + 30_000) * NAMES),
        // A dentry and an inode take 1200 each to free, an extent 250.
        ("drop-none", 4_000_000),
        ("drop-names", 4_000_000 + 2 * 1_200 * NAMES),
        ("drop-extents", 4_000_000 + (2 * 1_200 + 250) * NAMES),
        // A command costs 60 us and 5 of the CPU, a page of it 8 us; writing 30 and 6.
        ("disk-read-page", 73_000 * COMMANDS),
        ("disk-read-many", (65_000 + 256 * 8_000) * BLOCKS),
        ("disk-write-page", 41_000 * COMMANDS),
        ("disk-write-many", (35_000 + 256 * 6_000) * BLOCKS),
        ("disk-read-beside", 9_000_000 + 5_800 * COMMANDS),
        ("disk-write-beside", 9_000_000 + 4_800 * COMMANDS),
        ("burn", 9_000_000),
        // Back in a process takes 45 us longer than back in a thread.
        ("turns-processes", 80_000 * COMMANDS),
        ("turns-threads", 35_000 * COMMANDS),
        // Nearly three at once.
        ("fault-huge", 200_010 * HUGE),
        ("unmap-huge", 8_000 * HUGE),
        ("swap-out-huge", (90_120 + 5_000) * HUGE),
        ("disk-read-deep", 26_000 * COMMANDS),
        ("disk-write-deep", 13_000 * COMMANDS),
    ]
}

fn base() -> Machine {
    let source = lowmark_spec::Library::machine(&BuiltIn, "small-512m-ssd").expect("built in");
    parse_machine(&source).expect("a machine")
}

#[test]
fn costs_are_differences_of_medians() {
    let found = machine(&base(), &recording(&probes())).expect("all probes");
    let expected = Costs {
        touch_ns: 10,
        memset_page_ns: 600,
        minor_fault_ns: 500,
        major_fault_ns: 9_410 - 10 - 5_000 - 1_500 - 400,
        zero_page_ns: 1_000,
        zero_huge_page_ns: 200_000,
        swap_huge_page_ns: 90_000,
        swap_page_ns: 2_000,
        swap_in_ns: 1_500,
        swap_map_ns: 400,
        file_page_ns: 900,
        folio_page_ns: 299,
        dirty_page_ns: 2_300,
        request_ns: 5_000,
        scan_page_ns: 120,
        unmap_page_ns: 50,
        free_page_ns: 30,
        zap_page_ns: 700,
        zap_huge_page_ns: 8_000,
        zap_swap_ns: 80,
        copy_page_ns: 400,
        // Unmapping it, and mapping it again, takes 100 of that.
        migrate_page_ns: 24_900,
        syscall_ns: 300,
        scan_object_ns: 40,
        free_object_ns: 1_160,
        free_extent_ns: 250,
        lookup_ns: 2_000,
        read_inode_ns: 9_000,
        open_ns: 5_000,
        create_ns: 40_000,
        unlink_ns: 30_000,
        switch_mm_ns: 45_000,
        ..base().costs
    };
    assert_eq!(found.costs, expected);
    let device = &found.devices[0];
    assert_eq!((device.command_read_ns, device.page_ns), (60_000, 8_000));
    assert_eq!(
        (device.command_write_ns, device.position_read_ns),
        (30_000, 0)
    );
    assert_eq!(device.parallelism, 3);
    let error = machine(&base(), &recording(&probes()[1..])).expect_err("no touch");
    assert_eq!(error.probe, "touch");
}

/// On a system with much memory, and cgroups of version 1, some of it is told otherwise.
#[test]
fn a_host_tells_what_it_can() {
    let mut seen = recording(&probes());
    let steal = seen.counters.remove("cgroup/group/memory.stat.pgsteal");
    let error = machine(&base(), &seen).expect_err("nothing was reclaimed");
    assert_eq!(error.probe, "reclaim-unmapped");
    let halves = ["pgsteal_anon", "pgsteal_file"].map(str::to_owned);
    seen.counters
        .extend(halves.map(|half| (half, steal.expect("pages") / 2)));
    let whole = machine(&base(), &recording(&probes())).expect("all probes");
    assert_eq!(machine(&base(), &seen).expect("all probes"), whole);
    // Gigabytes of frames are looked at for the pages that move.
    seen.counters
        .insert("compact_free_scanned".into(), ROUNDS * 50_000_000);
    let costs = machine(&base(), &seen).expect("all probes").costs;
    assert_eq!(costs.migrate_page_ns, base().costs.migrate_page_ns);
    assert_eq!(costs.free_page_ns, whole.costs.free_page_ns);
}

#[test]
fn a_machine_file_reads_back_as_it_was() {
    let mut wanted = machine(&base(), &recording(&probes())).expect("all probes");
    wanted.description = "odd \"name\" \\ here".into();
    let text = to_toml(&wanted, "lowmark calibrate on Linux 6.18");
    let source = Source {
        name: "m.toml".into(),
        text,
    };
    let read = parse_machine(&source).unwrap_or_else(|error| panic!("{}", error.render_plain()));
    assert!(
        read.description.starts_with("odd \"name\" \\ here\n"),
        "{}",
        read.description
    );
    // The file says where its figures come from; all else is as it was.
    wanted.name = read.name.clone();
    wanted.description += "\ndevice.sda: lowmark calibrate on Linux 6.18";
    wanted.description += "\ncosts: lowmark calibrate on Linux 6.18";
    assert_eq!(read, wanted);
}

/// What was measured here was not fitted to anything.
#[test]
fn what_is_measured_is_not_fitted() {
    let mut base = base();
    for name in ["occupied", "costs.touch", "device.sda.page"] {
        base.fitted
            .insert(name.into(), vec!["table::row".to_owned()]);
    }
    let found = machine(&base, &recording(&probes())).expect("all probes");
    let fitted: Vec<&String> = found.fitted.keys().collect();
    assert_eq!(fitted, ["occupied"]);
}

/// The figures by which times are divided are those of the workload.
#[test]
fn the_probes_do_what_is_counted() {
    let source = Source {
        name: "probes.toml".into(),
        text: PROBES.into(),
    };
    let scenario = parse(&source, &BuiltIn, &Overrides::default())
        .expect("a workload")
        .remove(0);
    // The group's region is touched three times, each huge page twice.
    let touches = ROUNDS * (PAGES * (7 + 8 + 16 + PASSES) + 3 * LARGE + 2 * HUGE);
    assert_eq!(scenario.workload.touches_expected(), Some(touches));
    let sizes: Vec<u64> = scenario
        .workload
        .files
        .iter()
        .map(|file| file.size / PAGE_SIZE)
        .collect();
    // The third is made by writing it.
    assert_eq!(sizes, [CACHED, CACHED, 0, BLOCKS * BLOCK]);
    let names: Vec<&str> = scenario
        .workload
        .series
        .iter()
        .map(|s| s.name.as_str())
        .collect();
    assert_eq!(names.len(), probes().len());
    assert!(
        probes().iter().all(|(name, _)| names.contains(name)),
        "{names:?}"
    );
    let main = scenario
        .workload
        .tasks
        .iter()
        .find(|task| task.name == "main");
    let main = main.expect("it does the probes");
    // Five rounds of reads and writes: alone, beside others, beside who burns the CPU.
    assert_eq!(commands(&main.instances[0]), 5 * 6 * COMMANDS);
    assert!(crate::guest::check(&scenario).is_ok());
}

/// Blocks of one page that these statements read and write past the page cache.
fn commands(body: &[Stmt]) -> u64 {
    let of = |stmt: &Stmt| {
        let inner: u64 = stmt.op.bodies().into_iter().map(commands).sum();
        match &stmt.op {
            Op::Repeat {
                times: Times::Count(rounds),
                ..
            } => rounds * inner,
            Op::Read(io) | Op::Write(io) if io.direct && io.block == PAGE_SIZE => match io.amount {
                Amount::Count(count) => count,
                Amount::Passes(passes) => passes * BLOCKS * BLOCK,
            },
            _ => inner,
        }
    };
    body.iter().map(of).sum()
}

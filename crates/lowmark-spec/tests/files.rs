//! Every workload and machine that comes with lowmark parses, and some resolve to figures that were
//! worked out by hand.

use std::path::{Path, PathBuf};

#[allow(unused)]
use lowmark_spec::machine::{Arch, DeviceKind, Elevator, Pageblocks};
#[allow(unused)]
use lowmark_spec::workload::{
    Access, Advice, Alloc, AllocFlags, Amount, End, FileRef, MapKind, Op, Order, Probe, Range,
    SizeDist, Stmt, Times, Touch,
};
use lowmark_spec::{BuiltIn, Library, Machine, Overrides, Scenario, Source, parse, parse_machine};

fn files(directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(directory);
    let entries = std::fs::read_dir(directory).expect("the directory exists");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    files.sort();
    files
}

fn source(path: &Path) -> Source {
    let name = path
        .file_name()
        .expect("a file")
        .to_string_lossy()
        .into_owned();
    Source {
        name,
        text: std::fs::read_to_string(path).expect("readable"),
    }
}

fn workload(name: &str, overrides: &Overrides) -> Vec<Scenario> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../workloads")
        .join(name);
    parse(&source(&path), &BuiltIn, overrides)
        .unwrap_or_else(|error| panic!("{}", error.render_plain()))
}

fn machine(name: &str) -> Machine {
    let source = BuiltIn.machine(name).expect("a built-in machine");
    parse_machine(&source).unwrap_or_else(|error| panic!("{}", error.render_plain()))
}

fn ops(body: &[Stmt]) -> Vec<&Op> {
    body.iter().map(|statement| &statement.op).collect()
}

#[test]
fn every_workload_parses() {
    for path in files("workloads") {
        let scenarios = workload(
            &path.file_name().expect("a file").to_string_lossy(),
            &Overrides::default(),
        );
        let stem = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        assert!(!scenarios.is_empty());
        assert!(
            scenarios
                .iter()
                .all(|scenario| scenario.workload.name == stem),
            "{stem}"
        );
    }
}

#[test]
fn every_machine_parses_and_is_built_in() {
    let mut names = Vec::new();
    for path in files("machines") {
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let parsed = parse_machine(&source(&path))
            .unwrap_or_else(|error| panic!("{}", error.render_plain()));
        assert_eq!(parsed, machine(&name));
        assert_eq!(parsed.name, name);
        names.push(name);
    }
    assert_eq!(names, BuiltIn.machines());
}

/// 1000 MiB is 256,000 pages; the parameters turn with the last one fastest.
#[test]
fn swap_seq_rand() {
    let scenarios = workload("swap-seq-rand.toml", &Overrides::default());
    let params: Vec<Vec<&str>> = scenarios
        .iter()
        .map(|s| s.params.iter().map(|(_, value)| value.as_str()).collect())
        .collect();
    assert_eq!(
        params,
        [
            ["anon-private", "seq"],
            ["anon-private", "random"],
            ["anon-shared", "seq"],
            ["anon-shared", "random"]
        ]
    );
    let last = &scenarios[3];
    assert_eq!(last.seed, 0);
    assert_eq!(last.kernel.version, "v3.6");
    assert_eq!(last.kernel.sysctl["page_cluster"], "3");
    assert_eq!(last.workload.end, End::AllTasks);
    assert_eq!(last.workload.phases, ["touch"]);
    let task = &last.workload.tasks[0];
    assert_eq!(task.maps, ["m"]);
    assert_eq!(
        ops(&task.instances[0]),
        [
            &Op::Map {
                map: 0,
                kind: MapKind::AnonShared,
                length: 256_000 * 4096,
                offset: 0,
                advice: None,
                lock: false,
                exec: false
            },
            &Op::Phase(0),
            &Op::Touch {
                map: 0,
                what: Touch {
                    access: Access::Write,
                    order: Order::Random,
                    step: 4096,
                    amount: Amount::Count(5_000_000),
                    range: None,
                    rate: None
                }
            },
        ]
    );
    // Statements know their line of the file.
    assert_eq!(task.instances[0][0].line + 2, task.instances[0][2].line);
}

#[test]
fn desktop_900m() {
    let hdd = machine("desktop-900m-hdd");
    assert_eq!(
        (hdd.arch, hdd.ram(), hdd.nodes.len()),
        (Arch::X86_64, 230_400 * 4096, 1)
    );
    let disk = &hdd.devices[0];
    assert_eq!((disk.kind, disk.rotational), (DeviceKind::Hdd, true));
    assert_eq!(
        (disk.position_read_ns, disk.command_read_ns, disk.page_ns),
        (7_300_000, 120_000, 58_000)
    );
    assert_eq!(
        (disk.size, disk.max_request),
        (500_000_000_000, Some(524_288))
    );
    assert_eq!(disk.elevator, Elevator::Cfq);
    assert_eq!((hdd.swap[0].size, hdd.swap[0].priority), (1 << 30, -1));
    // One figure for both directions means both.
    assert_eq!(
        (hdd.costs.swap_page_ns, hdd.costs.swap_in_ns),
        (2_300, 2_300)
    );
    let guest = machine("guest-256m");
    assert!(guest.costs.swap_in_ns > guest.costs.swap_page_ns && guest.costs.swap_map_ns > 0);
    // What 6.1 was not measured to take is as under any kernel.
    let old = &guest.kernel_costs["v6.1"];
    assert!(old.request_ns > guest.costs.request_ns);
    assert_eq!(old.context_switch_ns, guest.costs.context_switch_ns);
    let ssd = machine("desktop-900m-ssd");
    assert_eq!(
        (ssd.devices[0].kind, ssd.devices[0].page_ns),
        (DeviceKind::Ssd, 17_300)
    );
    assert!(!ssd.devices[0].rotational);
    // 4096 bytes at 500 MB/s are 8.192 us.
    assert_eq!(machine("small-512m-ssd").devices[0].page_ns, 8_192);
    assert_eq!(machine("server-64g-2node").ram(), 64 << 30);
}

/// A file of four times 3 GiB, mapped whole.
#[test]
fn mapped_file_stream() {
    let scenario = &workload("mapped-file-stream.toml", &Overrides::default())[0];
    let file = &scenario.workload.files[0];
    assert_eq!(
        (file.size, file.fs.as_str(), file.unlinked),
        (12 << 30, "data", true)
    );
    assert_eq!(scenario.workload.end, End::KswapdIdle);
    let Op::Map {
        length,
        advice,
        kind,
        ..
    } = &scenario.workload.tasks[0].instances[0][0].op
    else {
        panic!("a map first")
    };
    assert_eq!(
        (*length, *advice, *kind),
        (12 << 30, Some(Advice::Random), MapKind::FileShared(0))
    );
}

/// 0.8 * 0.8 of 64 GiB less 553 MiB over 7 threads is 43,609,353,093.12 / 7 bytes: the fraction falls to a page.
#[test]
fn usemem_shares() {
    let scenarios = workload("usemem.toml", &Overrides::default());
    assert_eq!(scenarios.len(), 7);
    let seven = &scenarios[2].workload;
    assert_eq!(seven.tasks[1].instances.len(), 7);
    let Op::Map { length, .. } = seven.tasks[1].instances[0][0].op else {
        panic!("a map first")
    };
    assert_eq!(length, 43_609_353_093 / 7 / 4096 * 4096);
    // Thread 3 reads behind three parts of whole pages of 0.2 * 0.8 of that = 10,902,338,273.28 bytes.
    let Op::Map { offset, .. } = seven.tasks[2].instances[3][0].op else {
        panic!("a map first")
    };
    assert_eq!(offset, 10_902_338_273 / 7 / 4096 * 4096 * 3);
}

/// Block i of thread 1: the loop is written out, and its offsets are numbers.
#[test]
fn thpscale_blocks() {
    let overrides = Overrides {
        set: vec![("n".into(), "32".into())],
        ..Overrides::default()
    };
    let scenarios = workload("thpscale.toml", &overrides);
    assert_eq!(scenarios[0].params, [("n".to_owned(), "32".to_owned())]);
    // floor(0.8 * (64 GiB - 553 MiB) / 32 / 2 MiB / 2) = floor(406.1)
    let worker = &scenarios[0].workload.tasks[1];
    let Op::Repeat {
        times: Times::Count(1),
        body,
    } = &worker.instances[1][8].op
    else {
        panic!("the loop last")
    };
    assert_eq!(body.len(), 406);
    let Op::Sample { body, .. } = &body[5].op else {
        panic!("a sample")
    };
    let huge = 2 << 20;
    assert!(matches!(
        body[0].op,
        Op::Touch { what: Touch { range: Some(Range { offset, length: 1 }), step: 1, .. }, .. }
            if offset == 5 * huge
    ));
    assert_eq!(
        body[1].op,
        Op::Probe {
            map: 1,
            offset: 5 * huge + 64 * 4096,
            what: Probe::Huge
        }
    );
}

/// 0.95 of a MemTotal of 2777 MiB in huge pages of 2 MiB at 16 MiB/s: one attempt every 125 ms.
#[test]
fn stress_highalloc_pace() {
    let scenario = &workload("stress-highalloc.toml", &Overrides::default())[0];
    let tasks = &scenario.workload.tasks;
    let main = &tasks[2].instances[0];
    let allocs: Vec<&Alloc> = main
        .iter()
        .filter_map(|stmt| match &stmt.op {
            Op::Alloc(what) => Some(what),
            _ => None,
        })
        .collect();
    assert_eq!(allocs.len(), 3);
    for alloc in allocs {
        assert_eq!((alloc.order, alloc.count), (9, 1319));
        assert_eq!(
            (alloc.pace_ns, alloc.flags),
            (125_000_000, AllocFlags::Movable)
        );
        assert_eq!(alloc.give_up_success_ns, Some(600_000_000_000));
        let series = alloc.series.expect("a series");
        let names = [series.success, series.failed].map(|at| &scenario.workload.series[at]);
        assert_eq!(names[0].name, "huge-page");
        assert_eq!(names[1].name, "huge-page-failed");
        assert_eq!(names[0].unit, names[1].unit);
    }
    // A copy of the tree for each 400 of 2777 MB, and a build of each and of the tree itself.
    assert_eq!(tasks[1].instances.len(), 7);
    assert_eq!(scenario.workload.filesets[1].directories, 6 * 1640);
}

/// A workload with one task, or what is wrong with it.
fn task(run: &str) -> Result<Vec<Scenario>, String> {
    let text = format!(
        "lowmark = 1\n[workload]\nname = \"w\"\n[machine]\nuse = \"small-512m-ssd\"\n\
         [kernel]\nuse = \"v6.1\"\n[file.out]\ncopies = 4\nsize = \"1M\"\n[task.main]\nthreads = 2\nrun = [{run}]\n"
    );
    let source = Source {
        name: "w".into(),
        text,
    };
    parse(&source, &BuiltIn, &Overrides::default()).map_err(|error| error.render_plain())
}

/// Threads that are alike, with a number each, are those that a list spells out.
#[test]
fn a_number_of_threads_is_a_list_of_bodies() {
    let instances = |run: &str| {
        let scenarios = task(run).expect("it parses");
        let instances = &scenarios[0].workload.tasks[0].instances;
        instances
            .iter()
            .map(|body| body.iter().map(|stmt| stmt.op.clone()).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    let alike =
        instances("{ parallel = 2, index = \"i\", do = [{ write = \"out${2*idx + i}\" }] }");
    for (idx, ops) in alike.iter().enumerate() {
        let [Op::Parallel { bodies }] = &ops[..] else {
            panic!("{ops:?}");
        };
        let listed = format!(
            "{{ parallel = [[{{ write = \"out{}\" }}], [{{ write = \"out{}\" }}]] }}",
            2 * idx,
            2 * idx + 1
        );
        let listed = instances(&listed);
        let [Op::Parallel { bodies: listed }] = &listed[0][..] else {
            panic!("{listed:?}");
        };
        let ops_of = |bodies: &[Vec<Stmt>]| {
            let ops = bodies.iter().flatten().map(|stmt| stmt.op.clone());
            ops.collect::<Vec<_>>()
        };
        assert_eq!(ops_of(bodies), ops_of(listed), "thread {idx}");
    }
}

/// What a process of `build` maps is its own, and goes with it: neither is there afterwards nor in the next one.
#[test]
fn a_process_of_a_build_has_maps_of_its_own() {
    let map = "{ map = \"m\", kind = \"anon-private\", size = \"1M\" }";
    let touch = "{ touch = \"m\", access = \"write\" }";
    let build = |body: &str| format!("{{ build = 2, do = [{body}] }}");
    // The map of the instance and that of the processes have one name, also in a loop.
    let own = build(&format!("{map}, {touch}"));
    assert!(task(&format!("{map}, {{ repeat = 2, do = [{own}] }}, {touch}")).is_ok());
    let error = task(&format!("{map}, {}", build(touch))).expect_err("not mapped there");
    assert!(error.contains("which is not mapped here"), "{error}");
    let error = task(&format!("{own}, {touch}")).expect_err("gone");
    assert!(error.contains("which is not mapped here"), "{error}");
    let error = task("{ free = \"pages\" }").expect_err("never filled");
    assert!(error.contains("unknown pool `pages`"), "{error}");
    let error = task("{ alloc = \"pages\", order = 19 }").expect_err("too large");
    assert!(error.contains("an order from 0 to 18"), "{error}");
}

#[test]
fn filesets_and_barriers() {
    let scenario = &workload("simoop.toml", &Overrides::default())[0];
    let set = &scenario.workload.filesets[0];
    // floor((0.6 * 16384 + 160) / 80 * 4 / 16) = floor(31.22)
    assert_eq!(
        (set.directories, set.files, set.size),
        (16, 31, SizeDist::Fixed(80 << 20))
    );
    // create 1, worker 8, du 2, burn floor(8/5) = 1
    assert_eq!(scenario.workload.barriers[0].parties, 12);
    assert_eq!(scenario.workload.end, End::After(10_800_000_000_000));
    let postmark = &workload("postmark.toml", &Overrides::default())[0].workload;
    assert_eq!(
        postmark.filesets[0].size,
        SizeDist::Uniform(3096, 5_242_880)
    );
    // floor(4 * 7 GiB / 5 MiB) = 5734 files in 100 directories
    assert_eq!(postmark.filesets[0].files, 58);
    let dd = workload("dd-n.toml", &Overrides::default());
    assert_eq!(dd.len(), 8);
    assert_eq!(
        (dd[0].kernel.text.as_str(), dd[1].kernel.text.as_str()),
        ("v3.1", "v3.2")
    );
    let Op::Repeat { body, .. } = &dd[7].workload.tasks[0].instances[99][0].op else {
        panic!("a loop")
    };
    assert!(matches!(&body[0].op, Op::Append(io) if io.file == FileRef::File(99)));
}

#[test]
fn every_twin_parses() {
    let twins = files("workloads/twin");
    assert!(twins.len() >= 6, "{twins:?}");
    let mut of_two_nodes = 0;
    for path in twins {
        let stem = path.file_stem().expect("a name").to_string_lossy();
        let scenarios = workload(&format!("twin/{stem}.toml"), &Overrides::default());
        for scenario in &scenarios {
            assert_eq!(scenario.workload.name, format!("twin-{stem}"));
        }
        let of = |version: &str| {
            let of = scenarios.iter().filter(|s| s.kernel.version == version);
            of.count()
        };
        assert!(of("v6.1") > 0, "{stem}");
        assert_eq!([of("v6.12"), of("v6.18")], [of("v6.1"); 2], "{stem}");
        of_two_nodes += usize::from(scenarios.iter().all(|s| s.machine.nodes.len() == 2));
    }
    assert!(of_two_nodes >= 3, "{of_two_nodes} twins run on two nodes");
}

/// Each load of `why` has its entry in the list of what is to be said, and the other way round.
#[test]
fn every_load_of_why_parses() {
    let expected = include_str!("../../../workloads/why/expected.toml");
    let name = |line: &str| {
        let rest = line.strip_prefix("workload = \"")?;
        Some(rest.trim_end_matches('"').to_owned())
    };
    let mut expected: Vec<String> = expected.lines().filter_map(name).collect();
    expected.sort();
    let mut loads = Vec::new();
    for path in files("workloads/why") {
        let stem = path.file_stem().expect("a name").to_string_lossy();
        if stem == "expected" {
            continue;
        }
        for scenario in workload(&format!("why/{stem}.toml"), &Overrides::default()) {
            assert_eq!(scenario.workload.name, format!("why-{stem}"));
        }
        loads.push(stem.into_owned());
    }
    loads.sort();
    assert_eq!(loads, expected);
    assert!(loads.len() >= 40, "{} loads", loads.len());
}

#[test]
fn zones_are_those_of_a_kernel() {
    let with = |zones: &str| {
        let source = BuiltIn.machine("guest-256m").expect("a built-in machine");
        let text = format!("{}\n{zones}", source.text);
        parse_machine(&Source { text, ..source }).map_err(|error| error.render_plain())
    };
    let zone = |kind: &str, present: u64, managed: u64| {
        format!("[[zone]]\nkind = \"{kind}\"\npresent = \"{present}p\"\nmanaged = \"{managed}p\"\n")
    };
    let good = zone("DMA", 3_998, 3_840) + &zone("DMA32", 61_408, 50_000);
    let zones = with(&good).expect("a machine").zones;
    assert_eq!((zones[0].present, zones[1].managed), (3_998, 50_000));
    let left = with(
        &(good + "reclaimable = { pageblocks = 4, free = [3, 0, 2] }\nmovable = { free = [1] }\n"),
    )
    .expect("a machine")
    .zones;
    let free = |pageblocks: Pageblocks| pageblocks.free[..4].to_vec();
    assert_eq!(left[1].reclaimable.count, 4);
    assert_eq!(free(left[1].reclaimable), [3, 0, 2, 0]);
    assert_eq!(free(left[1].movable), [1, 0, 0, 0]);
    assert_eq!(left[0].movable, Pageblocks::default());
    for (wrong, said) in [
        (zone("DMA32", 9, 9) + &zone("DMA", 9, 9), "lowest first"),
        (zone("DMA32", 66_000, 9), "65536 pages of node 0"),
        (zone("DMA32", 9, 10), "at most 9 managed pages"),
        (
            zone("DMA", 9, 9) + "initmem = \"10p\"\n",
            "at most 9 pages of `initmem`",
        ),
        (
            zone("DMA", 9, 9) + "kept = \"10p\"\n",
            "at most 9 pages that CPUs keep",
        ),
        (
            zone("DMA", 999, 999) + "movable = { free = [1, 250] }\n",
            "at most 249 free blocks of order 1 in `movable`, with as many pages between them, found 250",
        ),
        (
            zone("DMA", 1_999, 1_999) + "reclaimable = { pageblocks = 4 }\n",
            "at most 3 pageblocks, which is what 1999 managed pages are, found 4 in `reclaimable`",
        ),
        (
            zone("DMA", 999, 999) + "movable = { free = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] }\n",
            "expected at most 10 numbers, for the orders 0 to 9, found 11",
        ),
        (
            zone("DMA", 999, 999) + "movable = { free = [\"some\"] }\n",
            "some",
        ),
        (
            zone("DMA", 999, 999) + "movable = [1]\n",
            "the keys of the pageblocks of a type",
        ),
        (zone("Odd", 9, 9), "a zone"),
        (zone("DMA", 9, 9) + "node = 1\n", "a node from 0 to 0"),
    ] {
        let error = with(&wrong).expect_err("not a machine");
        assert!(error.contains(said), "{error}");
    }
}

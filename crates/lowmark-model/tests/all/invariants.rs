//! Random workloads on random machines and kernels, with every invariant checked after every event.

use lowmark_model::kernel::{DESCRIPTIONS, Kernel, KernelError, versions};
use lowmark_model::{Options, Refusal, check, example_scenario, run};
use lowmark_record::Outcome;
use lowmark_spec::machine::{Device, Driver, Elevator, Machine, Node, PAGE_SIZE};
use lowmark_spec::workload::{
    Access, Advice, Amount, Duration, MapKind, Op, Order, Range, Sharing, Start, Stmt, Task, Times,
    Touch,
};
use lowmark_spec::{Scenario, Toggle};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn machine() -> impl Strategy<Value = Machine> {
    let elevators = prop_oneof![
        Just(Elevator::Noop),
        Just(Elevator::Deadline),
        Just(Elevator::Cfq)
    ];
    (
        1usize..3,
        // From 17 MiB on a node has two zones.
        prop_oneof![3 => 5u64..13, 1 => 17u64..22],
        1u32..4,
        0u64..4,
        any::<bool>(),
        elevators,
        1u32..40,
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(nodes, mib, cpus, swaps, hdd, elevator, queue_depth, thp, slow_unmapping)| {
                let mut machine = Machine::small(mib << 20, 0);
                machine.thp = thp;
                if slow_unmapping {
                    // Others run while a task holds what it has unmapped.
                    machine.costs.zap_page_ns = 20_000;
                    machine.costs.zap_huge_page_ns = 2_000_000;
                    machine.costs.zap_swap_ns = 20_000;
                }
                machine.nodes = vec![Node { ram: mib << 20 }; nodes];
                machine.cpus = cpus;
                let kind = if hdd { Device::hdd } else { Device::ssd };
                machine.devices = vec![Device {
                    elevator,
                    queue_depth,
                    driver: (!hdd).then_some(Driver::VirtioBlk),
                    ..kind("sda", 1 << 30)
                }];
                machine.swap = (0..swaps)
                    .map(|area| lowmark_spec::machine::SwapArea {
                        device: 0,
                        start: area * (32 << 20),
                        size: 24 << 20,
                        priority: -((area / 2) as i32),
                        file: area == 1,
                    })
                    .collect();
                machine
            },
        )
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        Just(Order::Seq),
        Just(Order::Reverse),
        Just(Order::Random),
        (500u32..1500).prop_map(Order::Zipf),
        (2u64..50).prop_map(Order::Stride),
        (50u32..400).prop_map(Order::Gauss),
    ]
}

fn body() -> impl Strategy<Value = Vec<Stmt>> {
    let kind = prop_oneof![Just(MapKind::AnonPrivate), Just(MapKind::AnonShared)];
    let access = prop_oneof![Just(Access::Read), Just(Access::Write)];
    (
        kind,
        64u64..2000,
        access,
        order(),
        100u64..4000,
        0u64..64,
        any::<bool>(),
        1u64..3,
        proptest::collection::vec(on_ranges(), 0..4),
    )
        .prop_map(
            |(kind, pages, access, order, count, skip, again, rounds, ranges)| {
                let length = pages * PAGE_SIZE;
                let touch = |access, order, count| Op::Touch {
                    map: 0,
                    what: Touch {
                        access,
                        order,
                        step: PAGE_SIZE,
                        amount: Amount::Count(count),
                        range: Some(Range {
                            offset: skip * PAGE_SIZE,
                            length: length - skip * PAGE_SIZE,
                        }),
                        rate: None,
                    },
                };
                let mut ops = vec![
                    Op::Map {
                        map: 0,
                        kind,
                        length,
                        offset: 0,
                        advice: None,
                        lock: false,
                        exec: false,
                    },
                    touch(Access::Write, Order::Seq, pages - skip),
                    touch(access, order, count),
                    Op::Sleep(Duration::Uniform(0, 20_000_000)),
                ];
                for (advice, begin, part) in ranges {
                    let range = Range {
                        offset: begin.min(pages - 1) * PAGE_SIZE,
                        length: part.min(pages - begin.min(pages - 1)) * PAGE_SIZE,
                    };
                    // Not more than there is memory for.
                    let some = Range {
                        length: range.length.min(64 * PAGE_SIZE),
                        ..range
                    };
                    let lock = |lock| Op::Mlock {
                        map: 0,
                        lock,
                        range: Some(some),
                    };
                    let locks = begin % 3 == 0 && advice.is_none();
                    ops.extend(locks.then(|| lock(true)));
                    ops.push(on_range(advice, kind, range));
                    ops.extend(locks.then(|| lock(false)));
                    ops.push(touch(access, order, count / 4));
                }
                if again {
                    ops.push(Op::Unmap {
                        map: 0,
                        range: None,
                        every: None,
                    });
                    ops.push(Op::Burn(Duration::Fixed(3_000_000)));
                }
                let body = ops.into_iter().map(|op| Stmt { line: 0, op }).collect();
                vec![Stmt {
                    line: 0,
                    op: Op::Repeat {
                        times: Times::Count(rounds),
                        body,
                    },
                }]
            },
        )
}

/// A statement about a range: what it is, and the range's first page and pages.
fn on_ranges() -> impl Strategy<Value = (Option<Advice>, u64, u64)> {
    let advice = proptest::sample::select(vec![
        None,
        Some(Advice::Sequential),
        Some(Advice::Willneed),
        Some(Advice::Dontneed),
        Some(Advice::Nohugepage),
        Some(Advice::Cold),
        Some(Advice::Pageout),
        Some(Advice::Free),
        Some(Advice::Populate),
        Some(Advice::PopulateRead),
    ]);
    (advice, 0u64..2000, 1u64..700)
}

/// The statement; a hole to punch where there is no advice, and where the advice is none for the map.
fn on_range(advice: Option<Advice>, kind: MapKind, range: Range) -> Op {
    let shared = kind == MapKind::AnonShared;
    match advice {
        Some(advice) if !(shared && advice == Advice::Free) => Op::Advise {
            map: 0,
            advice,
            range: Some(range),
        },
        _ => Op::Punch {
            map: 0,
            range,
            every: Some(2 * range.length),
        },
    }
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let version = proptest::sample::select(versions().to_vec());
    let toggle = proptest::sample::select(DESCRIPTIONS.to_vec()).prop_flat_map(|mechanism| {
        let variants = proptest::sample::select(mechanism.variants.to_vec());
        variants.prop_map(move |(variant, _)| Toggle::Set {
            mechanism: mechanism.name.into(),
            variant: variant.into(),
        })
    });
    let toggles = proptest::collection::vec(toggle, 0..3);
    let bodies = proptest::collection::vec(body(), 1..4);
    (
        machine(),
        version,
        toggles,
        bodies,
        0u64..6,
        any::<u64>(),
        any::<bool>(),
    )
        .prop_map(
            |(machine, version, toggles, bodies, cluster, seed, threads)| {
                let mut scenario = example_scenario();
                scenario.machine = machine;
                scenario.kernel.version = version.to_string();
                scenario.kernel.toggles = toggles;
                scenario
                    .kernel
                    .sysctl
                    .insert("page_cluster".into(), cluster.to_string());
                // Before 6.1 that does nothing.
                let lru_gen = ["0", "1", "7", "7"][(seed >> 32) as usize % 4];
                scenario
                    .kernel
                    .sysctl
                    .insert("lru_gen.enabled".into(), lru_gen.into());
                if scenario.machine.thp {
                    // A small machine has none unless they are asked for.
                    let sysctl = &mut scenario.kernel.sysctl;
                    sysctl.insert("thp.enabled".into(), "always".into());
                    let defrag = ["always", "madvise", "never"][seed as usize % 3];
                    sysctl.insert("thp.defrag".into(), defrag.into());
                    sysctl.insert("khugepaged.max_ptes_none".into(), (seed % 512).to_string());
                    sysctl.insert("khugepaged.scan_sleep_millisecs".into(), "1".into());
                }
                scenario.seed = seed;
                scenario.workload.tasks = vec![Task {
                    cgroup: None,
                    name: "toucher".into(),
                    sharing: if threads {
                        Sharing::Threads
                    } else {
                        Sharing::Processes
                    },
                    start: Start::AtBegin,
                    maps: vec!["m".into()],
                    instances: bodies,
                }];
                scenario
            },
        )
        .prop_filter("statements that came later", |scenario| {
            !matches!(check(scenario), Err(Refusal::Later { .. }))
        })
        .prop_filter("mechanisms that do not fit together", |scenario| {
            let kernel = Kernel::resolve(&scenario.kernel);
            !matches!(
                kernel,
                Err(KernelError::LeftOut { .. }
                    | KernelError::WithoutGenerations { .. }
                    | KernelError::Needs { .. })
            )
        })
}

/// The same cases every time, unless somebody asks for a number of them: then others each time.
fn config() -> ProptestConfig {
    let fuzzing = std::env::var_os("PROPTEST_CASES").is_some();
    if fuzzing {
        ProptestConfig::default()
    } else {
        ProptestConfig {
            cases: 40,
            rng_seed: RngSeed::Fixed(20_260_000),
            ..ProptestConfig::default()
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn invariants_hold_between_events(scenario in scenario()) {
        let options = Options { events: true, check_every: 1 };
        let recording = run(&scenario, &options, &mut |_| {}).expect("the model can run it");
        prop_assert!(
            !matches!(recording.outcome, Outcome::Deadlock { .. }),
            "{:?}", recording.outcome
        );
        prop_assert!(recording.events.iter().is_sorted_by_key(|event| event.time_ns));
        let begins = recording.events.iter().filter(|e| e.kind.name().ends_with("reclaim_begin"));
        let ends = recording.events.iter().filter(|e| e.kind.name().ends_with("reclaim_end"));
        let (begins, ends) = (begins.count(), ends.count());
        if recording.outcome == Outcome::Completed {
            prop_assert_eq!(begins, ends, "every direct reclaim that begins ends");
            let free = recording.state["nr_free_pages"];
            let on_lists: u64 = ["nr_inactive_anon", "nr_active_anon"]
                .map(|name| recording.state[name]).iter().sum();
            // What is still in flight when the last task ends is all that may be left.
            prop_assert!(on_lists <= 4096, "{} pages on the lists, {} free", on_lists, free);
        }
    }
}

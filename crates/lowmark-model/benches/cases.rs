//! The scenarios that are measured, for the benchmarks and for the programs under `examples/`.

// Each user needs a part of it.
#![allow(dead_code)]

use lowmark_model::{Options, run};
use lowmark_record::Recording;
use lowmark_spec::kernel::KernelSpec;
use lowmark_spec::machine::{Machine, PAGE_SIZE};
use lowmark_spec::workload::{
    Access, Amount, MapKind, Op, Order, Sharing, Start, Stmt, Task, Touch, Workload,
};
use lowmark_spec::{BuiltIn, Overrides, Scenario, Source, parse};

/// One mebibyte.
pub(crate) const MIB: u64 = 1 << 20;
/// One gibibyte.
pub(crate) const GIB: u64 = 1 << 30;

/// A task that maps one region, touches every page once and then touches on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    /// RAM in bytes.
    pub(crate) ram: u64,
    /// Swap in bytes.
    pub(crate) swap: u64,
    /// Length of the region in bytes.
    pub(crate) length: u64,
    /// What the region is made of.
    pub(crate) kind: MapKind,
    /// How it is touched.
    pub(crate) access: Access,
    /// In which order it is touched after the first pass.
    pub(crate) order: Order,
    /// Touches after the first pass.
    pub(crate) touches: u64,
    /// Whether every page is written once, in order, before that.
    pub(crate) populate: bool,
    /// `vm.page_cluster`
    pub(crate) page_cluster: u32,
}

impl Case {
    /// Everything fits: a quarter of the RAM is touched.
    pub(crate) fn resident(access: Access, order: Order, touches: u64) -> Case {
        Case {
            ram: GIB,
            swap: 64 * MIB,
            length: 256 * MIB,
            kind: MapKind::AnonPrivate,
            access,
            order,
            touches,
            populate: true,
            page_cluster: 3,
        }
    }

    /// Nothing fits: the region is larger than RAM by 300 : 256, and every touch is a write.
    pub(crate) fn reclaim(ram: u64, kind: MapKind, order: Order, touches: u64) -> Case {
        let length = (ram / 256 * 300).next_multiple_of(PAGE_SIZE);
        Case {
            ram,
            swap: length,
            length,
            kind,
            access: Access::Write,
            order,
            touches,
            populate: true,
            page_cluster: 3,
        }
    }

    /// The scenario on the kernel that has most of the mechanisms of its era.
    pub(crate) fn scenario(&self) -> Scenario {
        let mut ops = vec![Op::Map {
            map: 0,
            kind: self.kind,
            length: self.length,
            offset: 0,
            advice: None,
            lock: false,
            exec: false,
        }];
        if self.populate {
            ops.push(touch(Access::Write, Order::Seq, Amount::Passes(1)));
        }
        if self.touches > 0 {
            ops.push(touch(self.access, self.order, Amount::Count(self.touches)));
        }
        let body = ops.into_iter().map(|op| Stmt { line: 0, op }).collect();
        Scenario {
            params: Vec::new(),
            machine: Machine::small(self.ram, self.swap),
            kernel: KernelSpec::parse(&format!("{KERNEL},page_cluster={}", self.page_cluster))
                .expect("a kernel"),
            workload: workload(body),
            seed: SEED,
            phase: 0,
            boot: 0,
        }
    }

    /// Runs it.
    pub(crate) fn run(&self) -> Recording {
        run(&self.scenario(), &Options::default(), &mut |_| {}).expect("the model can run it")
    }
}

/// The kernel whose reclaim is measured: two lists per zone, adaptive swap-in readahead.
pub(crate) const KERNEL: &str = "v3.14";
/// Seed of every run.
pub(crate) const SEED: u64 = 0;
/// The task's name, from which its random stream follows.
pub(crate) const TASK: &str = "toucher";

fn touch(access: Access, order: Order, amount: Amount) -> Op {
    Op::Touch {
        map: 0,
        what: Touch {
            access,
            order,
            step: PAGE_SIZE,
            amount,
            range: None,
            rate: None,
        },
    }
}

fn workload(body: Vec<Stmt>) -> Workload {
    Workload {
        name: "bench".into(),
        title: "One task, one region".into(),
        tasks: vec![Task {
            name: TASK.into(),
            sharing: Sharing::Processes,
            cgroup: None,
            start: Start::AtBegin,
            maps: vec!["m".into()],
            instances: vec![body],
        }],
        ..Workload::default()
    }
}

/// Page faults of a run.
pub(crate) fn faults(recording: &Recording) -> u64 {
    recording.counters["pgfault"]
}

/// Cases by name: of the resident ones touches are counted, of the others faults.
pub(crate) fn all() -> Vec<(&'static str, Case)> {
    use Access::{Read, Write};
    use MapKind::{AnonPrivate, AnonShared};
    use Order::{Random, Seq, Zipf};
    let resident = |name, access, order, touches| (name, Case::resident(access, order, touches));
    let reclaim = |name, kind, order| (name, Case::reclaim(256 * MIB, kind, order, 1 << 22));
    vec![
        resident("resident seq read", Read, Seq, 1 << 28),
        resident("resident seq write", Write, Seq, 1 << 28),
        resident("resident random read", Read, Random, 1 << 26),
        resident("resident random write", Write, Random, 1 << 26),
        resident("resident zipf read", Read, Zipf(1000), 1 << 26),
        resident("resident zipf write", Write, Zipf(1000), 1 << 26),
        reclaim("reclaim anon seq", AnonPrivate, Seq),
        reclaim("reclaim anon random", AnonPrivate, Random),
        reclaim("reclaim shmem seq", AnonShared, Seq),
        reclaim("reclaim shmem random", AnonShared, Random),
    ]
}

/// Pages of the zipf replay.
pub(crate) const ZIPF_PAGES: u64 = 1_000_000;
/// Pages of its cache.
pub(crate) const ZIPF_CACHE: u64 = ZIPF_PAGES / 10;
/// Accesses of the zipf replay.
pub(crate) const ZIPF_ACCESSES: u64 = 10_000_000;

/// The zipf replay: a cache of [`ZIPF_CACHE`] pages in front of [`ZIPF_PAGES`].
///
/// Reads of a shared mapping that is never written: pages are allocated, referenced, put on the two
/// lists and reclaimed, and nothing is read or written. That is what a cache simulator does, too. With
/// `swapping` the pages are private and written, so that every miss is also a swap-in and, sooner or
/// later, a swap-out.
pub(crate) fn zipf(theta_milli: u32, swapping: bool) -> Case {
    Case {
        // RAM in which kswapd leaves about that many pages in use: the marks take 1.6 % of it.
        ram: ZIPF_RAM_PAGES * PAGE_SIZE,
        swap: ZIPF_PAGES * PAGE_SIZE * 2,
        length: ZIPF_PAGES * PAGE_SIZE,
        kind: if swapping {
            MapKind::AnonPrivate
        } else {
            MapKind::AnonShared
        },
        access: if swapping {
            Access::Write
        } else {
            Access::Read
        },
        order: Order::Zipf(theta_milli),
        touches: ZIPF_ACCESSES,
        populate: false,
        page_cluster: 0,
    }
}

const ZIPF_RAM_PAGES: u64 = 101_700;

/// So many times dd for a minute on the kernel in which throttling does no I/O any more, as `workloads/dd-n.toml` has it.
pub(crate) fn dd(writers: u32) -> Scenario {
    let source = Source {
        name: "workloads/dd-n.toml".into(),
        text: include_str!("../../../workloads/dd-n.toml").into(),
    };
    let set = [("n", writers.to_string()), ("length", "60s".into())];
    let overrides = Overrides {
        kernels: vec!["v3.2".into()],
        set: set.map(|(name, value)| (name.into(), value)).to_vec(),
        ..Overrides::default()
    };
    let mut scenarios = parse(&source, &BuiltIn, &overrides).expect("a good workload");
    scenarios.remove(0)
}

/// Runs it.
pub(crate) fn write(scenario: &Scenario) -> Recording {
    run(scenario, &Options::default(), &mut |_| {}).expect("the model can run it")
}

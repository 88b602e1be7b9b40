//! A model of Linux memory management that runs in virtual time.
//!
//! [`run`] carries out a [`Scenario`] and gives a [`Recording`]: the same
//! scenario gives the same recording, byte for byte, on any machine. Nothing here does I/O, reads a
//! clock or uses threads.
//!
//! The rooms: [`kernel`] says which kernel has which mechanism, `mm` holds the mechanisms under the
//! names of the kernel's files, `device` what lies below, `time` the virtual CPUs and the clock, `task`
//! carries out the workload.
//!
//! ```
//! use lowmark_model::{Options, run};
//! # let scenario = lowmark_model::example_scenario();
//! let recording = run(&scenario, &Options::default(), &mut |_| {}).expect("the model can run it");
//! assert!(recording.counters["pgfault"] > 0);
//! ```

mod boot;
mod device;
mod footprint;
mod fs;
mod ids;
mod invariants;
pub mod kernel;
mod looks;
mod mm;
mod nfs;
mod not_modelled;
mod output;
mod refuse;
mod task;
mod time;
mod trace;
mod world;

pub use footprint::memory_expected;
pub use mm::alloc::mmzone;
pub use mm::writeback::page_writeback::{estimate, pause, position, thresholds};
pub use output::Progress;
pub use refuse::{Refusal, check};
pub use task::{Later, Unsupported, unsupported};

use boot::Boot;
use kernel::Kernel;
use lowmark_record::{Recording, Sink, Source};
use lowmark_spec::Scenario;
use lowmark_spec::visit::Touched;
use mm::compaction::kcompactd::kcompactd;
use mm::huge_memory::khugepaged;
use world::{Sys, SysRef, World};

/// How to run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Record every tracepoint event, and the state of memory over the run.
    pub events: bool,
    /// Check the invariants after every so many events, and at the end; 0 for never. Each check goes through all
    /// pages. A panic when one is broken.
    pub check_every: u64,
}

/// Runs a scenario to its end.
///
/// `progress` is called now and then with how far the run is.
///
/// # Errors
///
/// Before anything runs, when the machine, the kernel or a statement of the workload is beyond the
/// model.
pub fn run(
    scenario: &Scenario,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Recording, Refusal> {
    let sys = started(scenario, options)?;
    let mut observer = output::Observer::new(options, progress);
    let verdict = time::run_until_idle(&sys, &mut |world| observer.observe(world));
    if options.check_every > 0 {
        invariants::check(&sys.world());
    }
    let mut recording = output::recording(&mut sys.world(), scenario, verdict);
    (recording.gauges, recording.history) = observer.looks();
    Ok(recording)
}

/// Runs a scenario to its end and lets its events go by while it runs: the recording is that of [`run`] with
/// [`Options::events`], but holds no events. The memory that it takes does not grow with their number.
///
/// # Errors
///
/// As for [`run`].
pub fn stream(
    scenario: &Scenario,
    sink: &mut dyn Sink,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Recording, Source), Refusal> {
    let options = Options {
        events: true,
        ..Options::default()
    };
    let sys = started(scenario, &options)?;
    let mut observer = output::Observer::new(&options, progress);
    let mut events = trace::Stream::new(sink);
    let verdict = time::run_until_idle(&sys, &mut |world| {
        observer.observe(world);
        events.observe(world);
    });
    let source = events.end(&mut sys.world());
    let mut recording = output::recording(&mut sys.world(), scenario, verdict);
    (recording.gauges, recording.history) = observer.looks();
    Ok((recording, source))
}

/// Runs a scenario and gives every page that its touch statements came to, in order of time: what other
/// backends must come to as well, each thread for itself.
///
/// # Errors
///
/// As for [`run`].
pub fn touches(scenario: &Scenario) -> Result<Vec<Touched>, Refusal> {
    let sys = started(scenario, &Options::default())?;
    sys.world().workload.touched = Some(Vec::new());
    time::run_until_idle(&sys, &mut |_| {});
    let touched = sys.world().workload.touched.take();
    Ok(touched.unwrap_or_default())
}

/// A world in which the first tasks are ready to run.
fn started(scenario: &Scenario, options: &Options) -> Result<SysRef, Refusal> {
    check(scenario)?;
    let kernel = Kernel::resolve(&scenario.kernel)?;
    let traced = options.events.then(|| kernel.version.release());
    let boot = Boot::of(scenario);
    let mut world = World::new(
        &boot.machine(&scenario.machine),
        kernel,
        trace::Trace::new(traced),
    );
    boot.vary(&mut world);
    let sys = Sys::new(world);
    let nodes = sys.world().mm.nodes.keys();
    for node in nodes {
        let body = Box::pin(mm::reclaim::kswapd::kswapd(sys.clone(), node));
        sys.world().spawn(format!("kswapd{node}"), true, body);
        if sys.world().mm.has_kcompactd() {
            let body = Box::pin(kcompactd(sys.clone(), node));
            sys.world().spawn(format!("kcompactd{node}"), true, body);
        }
    }
    if sys.world().mm.huge.is_on() {
        let body = Box::pin(khugepaged(sys.clone()));
        sys.world().spawn("khugepaged".into(), true, body);
    }
    let has_kblockd = sys.world().block.has_kblockd();
    if has_kblockd {
        let body = Box::pin(device::kblockd(sys.clone()));
        let mut world = sys.world();
        let worker = world.spawn_worker("kworker/0:1H-kblockd".into(), body);
        world.block.set_kblockd(worker);
    }
    if scenario.workload.has_files() {
        let journals = sys.world().mounts.with_journal();
        for fs in journals {
            let body = Box::pin(fs::jbd::kjournald(sys.clone(), fs));
            sys.world().spawn("kjournald".into(), true, body);
        }
        start_xfs(&sys);
    }
    task::start(&sys, scenario, &boot);
    sys.world().start_flushing_stats(scenario.phase);
    Ok(sys)
}

/// Starts the threads of file systems of XFS.
fn start_xfs(sys: &SysRef) {
    use fs::xfs::{xfs_log_worker, xfs_reclaim_worker, xfsaild, xlog_cil_push_work};
    let mounted = sys.world().mounts.with_xfs();
    for fs in mounted {
        let threads: [(&str, time::BoxFuture); 4] = [
            ("xfsaild", Box::pin(xfsaild(sys.clone(), fs))),
            (
                "kworker-xfs-cil",
                Box::pin(xlog_cil_push_work(sys.clone(), fs)),
            ),
            (
                "kworker-xfs-sync",
                Box::pin(xfs_log_worker(sys.clone(), fs)),
            ),
            (
                "kworker-xfs-reclaim",
                Box::pin(xfs_reclaim_worker(sys.clone(), fs)),
            ),
        ];
        for (name, body) in threads {
            sys.world().spawn(name.into(), true, body);
        }
    }
}

/// A small scenario for examples: 20 MiB touched twice in 16 MiB.
pub fn example_scenario() -> Scenario {
    use lowmark_spec::workload::{
        Access, Amount, MapKind, Op, Order, Sharing, Start, Stmt, Task, Touch, Workload,
    };
    let map = Op::Map {
        map: 0,
        kind: MapKind::AnonPrivate,
        length: 20 << 20,
        offset: 0,
        advice: None,
        lock: false,
        exec: false,
    };
    let touch = Op::Touch {
        map: 0,
        what: Touch {
            access: Access::Write,
            order: Order::Seq,
            step: lowmark_spec::machine::PAGE_SIZE,
            amount: Amount::Passes(2),
            range: None,
            rate: None,
        },
    };
    let body = [map, touch].map(|op| Stmt { line: 0, op }).to_vec();
    Scenario {
        params: Vec::new(),
        machine: lowmark_spec::Machine::small(16 << 20, 64 << 20),
        kernel: lowmark_spec::KernelSpec::parse("v3.6").expect("a kernel"),
        workload: Workload {
            name: "example".into(),
            title: "A mapping larger than memory, twice".into(),
            tasks: vec![Task {
                name: "toucher".into(),
                sharing: Sharing::Processes,
                cgroup: None,
                start: Start::AtBegin,
                maps: vec!["m".into()],
                instances: vec![body],
            }],
            ..Workload::default()
        },
        seed: 0,
        phase: 0,
        boot: 0,
    }
}

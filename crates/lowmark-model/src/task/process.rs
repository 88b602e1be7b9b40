//! Short-lived processes, one after the other: the statement `build`.
//!
//! 1. fork(2) takes a kernel stack, and exec(2) the upper levels of page tables, the lowest level of what every program
//!    maps, and the kernel's structures of a process. None of it can be moved. Tables of what the process maps itself are
//!    those of its regions (`mm/fault/pgtable.rs`).
//! 2. The process carries out its statements.
//! 3. Its maps and files go with it, and then what the kernel had of it.

use super::alloc;
use super::context::{Context, Stop};
use super::interpreter::{BodyFuture, run_body};
use super::{fileio, maps};
use crate::kernel::KernelStack;
use crate::mm::alloc::page_alloc::alloc_pages;
use crate::mm::types::{Gfp, Pfn};
use crate::time::{BoxFuture, RwSem, TaskId, WaitQueue};
use crate::world::Sys;
use lowmark_spec::machine::Arch;
use lowmark_spec::random::Stream;
use lowmark_spec::workload::Stmt;
use std::cell::RefCell;
use std::rc::Rc;

/// Single pages that the kernel has of every process: 13 of page tables (`VmPTE` and `VmPMD` of a small program on x86-64 are
/// 52 KB), and 5 of structures: tasks and signals, regions, files, the `mm`.
const PROCESS_PAGES: usize = 18;

/// What the kernel has of a process.
struct Footprint {
    /// Blocks with their orders.
    blocks: Vec<(Pfn, usize)>,
}

impl Footprint {
    /// fork(2) and exec(2). An error: there was no memory, or the parent is killed.
    async fn take(sys: &Sys) -> Result<Footprint, Stop> {
        let (gfp, stack) = {
            let world = sys.world();
            let gfp = Gfp::kernel(world.sched.current_node());
            let stack = match world.mm.kernel.mechanisms.zones.kernel_stack {
                // PPC64 has had 16 KiB all along.
                KernelStack::TwoPages if world.mm.arch == Arch::Ppc64 => &[2][..],
                KernelStack::TwoPages => &[1],
                KernelStack::FourPages => &[2],
                KernelStack::Mapped => &[0; 4],
            };
            (gfp, stack)
        };
        let mut footprint = Footprint { blocks: Vec::new() };
        for order in stack.iter().copied().chain([0; PROCESS_PAGES]) {
            match alloc_pages(sys, gfp, order).await {
                Ok(pfn) => footprint.hold(sys, pfn, order),
                Err(out_of_memory) => {
                    footprint.give_back(sys);
                    return Err(out_of_memory.into());
                }
            }
        }
        let cost = sys
            .world()
            .memory_time(PROCESS_PAGES as u64 * sys.costs.zero_page_ns);
        // fork, exec, exit and wait.
        sys.charge_kernel(cost + 4 * sys.costs.syscall_ns).await;
        Ok(footprint)
    }

    fn hold(&mut self, sys: &Sys, pfn: Pfn, order: usize) {
        sys.world().mm.hold(pfn, order, false);
        self.blocks.push((pfn, order));
    }

    fn give_back(self, sys: &Sys) {
        let world = &mut *sys.world();
        for (pfn, _) in self.blocks {
            world.mm.let_go(pfn);
        }
    }
}

/// How a process ended, for its parent.
#[derive(Default)]
struct Exit {
    result: Option<Result<(), Stop>>,
    waiter: WaitQueue,
}

/// Runs a process to its end; an error if it could not carry out its statements.
pub(super) fn run_process<'a>(context: &'a mut Context, body: &'a [Stmt]) -> BodyFuture<'a> {
    Box::pin(async move {
        let sys = context.sys.clone();
        let footprint = Footprint::take(&sys).await?;
        let exit = Rc::new(RefCell::new(Exit::default()));
        let child = start(context, body.to_vec(), exit.clone());
        let result = wait(&sys, child, &exit).await;
        sys.world().sched.reap(child);
        footprint.give_back(&sys);
        result
    })
}

/// Starts a process that has no maps yet, and no open files.
fn start(context: &mut Context, body: Vec<Stmt>, exit: Rc<RefCell<Exit>>) -> TaskId {
    context.threads += 1;
    let world = &mut *context.sys.world();
    world.spaces.push(RwSem::default());
    let space = world.spaces.len() - 1;
    let name = context.program.workload.tasks[context.task].name.clone();
    let mut process = Context {
        stream: Stream::new(context.stream.next_u64(), &name, context.threads),
        space,
        maps: vec![None; context.maps.len()],
        open: Default::default(),
        picks: Default::default(),
        held: Default::default(),
        thread: 0,
        threads: 0,
        ..context.clone()
    };
    let future: BoxFuture = Box::pin(async move {
        let result = run_body(&mut process, &body).await;
        for map in 0..process.maps.len() {
            maps::unmap(&mut process, map).await;
        }
        fileio::close_all(&mut process).await;
        alloc::free_all(&mut process);
        let world = &mut *process.sys.world();
        let (task, cpu) = (world.sched.current(), world.sched.current_cpu());
        world.dirtying.end(task, cpu);
        let mut exit = exit.borrow_mut();
        exit.result = Some(result);
        exit.waiter.wake_all(&mut world.sched);
    });
    let memcg = world.current_memcg();
    let id = world.spawn(name, false, future);
    world.sched.set_mm(id, space);
    world.mm.memcontrol.attach(id, memcg);
    id
}

/// wait(2). A parent that is killed takes the process with it.
async fn wait(sys: &Sys, child: TaskId, exit: &RefCell<Exit>) -> Result<(), Stop> {
    let mut killed = false;
    loop {
        {
            let world = &mut *sys.world();
            let mut exit = exit.borrow_mut();
            if let Some(result) = exit.result.take() {
                return result;
            }
            if world.sched.current_killed() && !killed {
                killed = true;
                world.sched.kill(child);
            }
            exit.waiter.block(&mut world.sched, "the end of a process");
        }
        sys.suspend().await;
    }
}

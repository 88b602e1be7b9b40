//! Carrying out a task's statements.

use super::barrier;
use super::context::{Context, Program, Stop};
use super::process::run_process;
use super::support::unsupported;
use super::{Barrier, Files, Group, Shared};
use super::{advise, alloc, fileio, maps, mlock};
use crate::boot::Boot;
use crate::ids::{MemcgId, NodeId};
use crate::mm::files::truncate;
use crate::mm::memcontrol::memory_reclaim;
use crate::mm::writeback::fs_writeback::flusher;
use crate::time::{BoxFuture, Mode, RwSem, TaskId};
use crate::world::{Interrupt, SysRef};
use lowmark_record::Phase;
use lowmark_spec::Scenario;
use lowmark_spec::machine::PAGE_SIZE;
use lowmark_spec::random::Stream;
use lowmark_spec::workload::{
    Access, Amount, CgroupId, Cmp, Condition, End, Op, Order, Sharing, Start, Stmt, Times, Touch,
    series_number,
};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// Starts the tasks of a workload that begin with the run.
///
/// The caller has made sure that nothing in it is [`unsupported`].
pub(crate) fn start(sys: &SysRef, scenario: &Scenario, boot: &Boot) {
    let Scenario {
        machine,
        workload,
        seed,
        ..
    } = scenario;
    let seed = *seed;
    debug_assert!(unsupported(workload).is_empty());
    {
        let world = &mut *sys.world();
        let recursive = workload.recursive_protection;
        world
            .mm
            .make_cgroups(&workload.cgroups, recursive, machine.cpus);
        world.mm.make_group_wbs(&machine.devices);
        world.mm.make_group_lrus(boot.number());
    }
    if workload.has_files() {
        let devices = sys.world().mounts.devices();
        let wbs = sys.world().mm.bdis.keys();
        for wb in wbs {
            let (device, memcg) = sys.world().mm.whose_wb(wb);
            if !devices.contains(&device) {
                continue;
            }
            let minor = 16 * u64::from(device);
            let name = match memcg {
                MemcgId::ROOT => format!("flush-8:{minor}"),
                memcg => format!("flush-8:{minor}-{memcg}"),
            };
            let body = Box::pin(flusher(sys.clone(), wb));
            sys.world().spawn(name, true, body);
        }
    }
    let program = Rc::new(Program {
        workload: workload.clone(),
        seed,
    });
    {
        let world = &mut *sys.world();
        let files = Files::prepare(world, machine, workload, seed);
        world.workload = Shared {
            files,
            barriers: workload
                .barriers
                .iter()
                .map(|b| Barrier {
                    parties: b.parties,
                    ..Barrier::default()
                })
                .collect(),
            groups: workload.tasks.iter().map(|_| Group::default()).collect(),
            until_kswapd_idle: workload.end == End::KswapdIdle,
            locks: mlock::is_in(workload),
            ..Shared::default()
        };
        if let End::After(time) = workload.end {
            world.sched.interrupt_after(time, Interrupt::EndOfRun);
        }
    }
    for task in boot.start_order(workload.tasks.len()) {
        let spec = &workload.tasks[task];
        if spec.start == Start::AtBegin {
            start_instances(sys, &program, task, spec.instances.len() as u64);
        }
    }
}

/// Starts the next `count` instances of a task.
fn start_instances(sys: &SysRef, program: &Rc<Program>, task: usize, count: u64) {
    let world = &mut *sys.world();
    let spec = &program.workload.tasks[task];
    let first = world.workload.groups[task].started.len();
    let memcg = memcg_of(spec.cgroup);
    let mut space = None;
    for instance in first..spec.instances.len().min(first + count as usize) {
        let own = match (spec.sharing, space) {
            (Sharing::Threads, Some(space)) => space,
            _ => {
                world.spaces.push(RwSem::default());
                world.spaces.len() - 1
            }
        };
        space = Some(own);
        let context = Context {
            sys: sys.clone(),
            stream: Stream::new(program.seed, &spec.name, instance as u64),
            program: program.clone(),
            task,
            instance,
            thread: 0,
            space: own,
            maps: vec![None; spec.maps.len()],
            open: Default::default(),
            picks: Default::default(),
            held: Default::default(),
            threads: 0,
            answer: None,
        };
        let body: BoxFuture = Box::pin(run_instance(context, instance));
        let id = world.spawn(spec.name.clone(), false, body);
        world.sched.set_mm(id, own);
        world.mm.memcontrol.attach(id, memcg);
        world.workload.groups[task].started.push(id);
    }
}

/// The root is the first group.
fn memcg_of(cgroup: Option<CgroupId>) -> MemcgId {
    cgroup.map_or(MemcgId::ROOT, |id| MemcgId::from(id + 1))
}

async fn run_instance(mut context: Context, instance: usize) {
    let program = context.program.clone();
    let body = &program.workload.tasks[context.task].instances[instance];
    // A killed task ends like one that has finished: its memory is given back either way.
    let _stopped = run_body(&mut context, body).await;
    for map in 0..context.maps.len() {
        maps::unmap(&mut context, map).await;
    }
    fileio::close_all(&mut context).await;
    alloc::free_all(&mut context);
    // Files without a name go with the last task that could have them open.
    let kept = {
        let world = &mut *context.sys.world();
        let (task, cpu) = (world.sched.current(), world.sched.current_cpu());
        world.dirtying.end(task, cpu);
        match world.sched.live() {
            1 => std::mem::take(&mut world.workload.files.kept),
            _ => Vec::new(),
        }
    };
    for inode in kept {
        truncate::close(&context.sys, inode).await;
    }
    let world = &mut *context.sys.world();
    let group = &mut world.workload.groups[context.task];
    group.ended += 1;
    group.waiters.wake_all(&mut world.sched);
}

pub(super) type BodyFuture<'a> = Pin<Box<dyn Future<Output = Result<(), Stop>> + 'a>>;

/// Carries out statements in order; one that cannot be carried out ends the run. Boxed, because bodies nest.
pub(super) fn run_body<'a>(context: &'a mut Context, body: &'a [Stmt]) -> BodyFuture<'a> {
    Box::pin(async move {
        for stmt in body {
            let around = {
                let world = &mut *context.sys.world();
                if world.sched.current_killed() {
                    return Err(Stop::Killed);
                }
                world.workload.set_line(world.sched.current(), stmt.line)
            };
            run_stmt(context, stmt).await.map_err(|stop| {
                if let Stop::Failed(problem) = stop {
                    let task = &context.program.workload.tasks[context.task].name;
                    let verdict = format!("{}: {problem}", stmt.op.name());
                    let world = &mut *context.sys.world();
                    world.fail(task.clone(), stmt.line, verdict);
                }
                Stop::Killed
            })?;
            let world = &mut *context.sys.world();
            world.workload.set_line(world.sched.current(), around);
        }
        Ok(())
    })
}

async fn run_stmt(context: &mut Context, stmt: &Stmt) -> Result<(), Stop> {
    let sys = context.sys.clone();
    match &stmt.op {
        Op::Map {
            map,
            kind,
            length,
            offset,
            advice,
            lock,
            exec,
        } => {
            maps::map_region(context, *map, *kind, *length, *offset, *exec, *advice).await?;
            if *lock {
                mlock::mlock(context, *map, true, None).await?;
            }
        }
        Op::Unmap { map, range, every } => match range {
            None => maps::unmap(context, *map).await,
            Some(range) => maps::unmap_range(context, *map, *range, *every).await?,
        },
        Op::Mlock { map, lock, range } => mlock::mlock(context, *map, *lock, *range).await?,
        Op::Punch { map, range, every } => maps::punch(context, *map, *range, *every).await?,
        Op::Touch { map, what } => {
            return maps::touch_map(context, *map, *what, sys.costs.touch_ns).await;
        }
        Op::Memset { map, range } => {
            let what = Touch {
                access: Access::Write,
                order: Order::Seq,
                step: PAGE_SIZE,
                amount: Amount::Passes(1),
                range: *range,
                rate: None,
            };
            return maps::touch_map(context, *map, what, sys.costs.memset_page_ns).await;
        }
        Op::Advise { map, advice, range } => {
            advise::advise(context, *map, *advice, *range).await?;
        }
        Op::Probe { map, offset, what } => {
            context.answer = Some(maps::probe(context, *map, *offset, *what)?);
            sys.charge_kernel(sys.costs.syscall_ns).await;
        }
        Op::Reclaim { cgroup, size } => {
            let group = memcg_of(Some(*cgroup));
            Box::pin(memory_reclaim(&sys, group, size / PAGE_SIZE)).await;
            sys.charge_kernel(sys.costs.syscall_ns).await;
        }
        Op::Node { node } => {
            let world = &mut *sys.world();
            let node = NodeId::from(*node as usize % world.mm.nodes.len());
            world.sched.prefer_node(node);
        }
        Op::Sysctl { name, value } => {
            let written = sys.world().mm.write_sysctl(name, value);
            debug_assert!(written.is_ok(), "checked before the run");
            sys.charge_kernel(sys.costs.syscall_ns).await;
        }
        Op::Sleep(duration) | Op::Think(duration) => {
            let time = duration.draw(&mut context.stream);
            sys.sleep(time).await;
        }
        Op::Burn(duration) => {
            let time = duration.draw(&mut context.stream);
            sys.world().sched.set_burning(true);
            sys.charge(Mode::User, time).await;
            sys.world().sched.set_burning(false);
        }
        Op::Barrier(index) => barrier::wait(&sys, *index).await,
        Op::StopSelf => {
            sys.world().sched.block("SIGCONT");
            sys.suspend().await;
        }
        Op::Resume { task } => for_each_running(context, *task, |sched, id| sched.wake(id)),
        Op::Kill { task } => for_each_running(context, *task, |sched, id| sched.kill(id)),
        Op::Spawn { task, count } => start_instances(&sys, &context.program, *task, *count),
        Op::Wait { task } => wait_for(context, *task).await,
        Op::Repeat { times, body } => return repeat(context, *times, body, run_body).await,
        Op::Build { times, body } => return repeat(context, *times, body, run_process).await,
        Op::Alloc(what) => return alloc::alloc(context, what).await,
        Op::Free { pool } => alloc::free(context, *pool).await,
        Op::Until {
            condition,
            poll_ns,
            body,
        } => {
            while !holds(context, condition) {
                run_body(context, body).await?;
                sys.sleep(*poll_ns).await;
                if sys.world().sched.current_killed() {
                    return Err(Stop::Killed);
                }
            }
        }
        Op::Parallel { bodies } => parallel(context, bodies).await,
        Op::Phase(label) => {
            let world = &mut *sys.world();
            let label = context.program.workload.phases[*label].clone();
            let task = context.program.workload.tasks[context.task].name.clone();
            world.workload.phases.push(Phase {
                label,
                task,
                time_ns: world.sched.now(),
            });
        }
        Op::Sample { series, body } => {
            context.answer = None;
            let start = sys.world().sched.now();
            run_body(context, body).await?;
            let number = series_number(*series, context.answer.take());
            let world = &mut *sys.world();
            let now = world.sched.now();
            let samples = world.workload.samples.entry(number).or_default();
            samples.push((now, now - start));
        }
        _ => return fileio::run(context, stmt).await,
    }
    Ok(())
}

fn for_each_running(context: &Context, task: usize, act: impl Fn(&mut crate::time::Sched, TaskId)) {
    let world = &mut *context.sys.world();
    for &id in &world.workload.groups[task].started {
        if world.sched.task(id).end.is_none() {
            act(&mut world.sched, id);
        }
    }
}

/// Waits until every instance of a task that was started has ended.
async fn wait_for(context: &Context, task: usize) {
    let sys = &context.sys;
    loop {
        {
            let world = &mut *sys.world();
            let group = &mut world.workload.groups[task];
            if group.ended == group.started.len() || world.sched.current_killed() {
                return;
            }
            group.waiters.block(&mut world.sched, "the end of a task");
        }
        sys.suspend().await;
    }
}

/// What one round of a loop is.
type Round = for<'a> fn(&'a mut Context, &'a [Stmt]) -> BodyFuture<'a>;

async fn repeat(
    context: &mut Context,
    times: Times,
    body: &[Stmt],
    round: Round,
) -> Result<(), Stop> {
    match times {
        Times::Count(count) => {
            for _ in 0..count {
                round(context, body).await?;
            }
        }
        Times::For(time) => {
            let now = |context: &Context| context.sys.world().sched.now();
            let end = now(context).saturating_add(time);
            while now(context) < end {
                round(context, body).await?;
                // A body that takes no time at all must not stop the clock.
                context.sys.charge(Mode::User, 1).await;
            }
        }
        Times::Forever => loop {
            round(context, body).await?;
            context.sys.charge(Mode::User, 1).await;
        },
    }
    Ok(())
}

fn holds(context: &Context, condition: &Condition) -> bool {
    let world = context.sys.world();
    match condition {
        Condition::KswapdIdle => world.mm.nodes.iter().all(|node| node.kswapd.asleep),
        Condition::Vmstat { field, cmp, value } => {
            let found = world.vmstat().get(field.as_str()).copied().unwrap_or(0);
            match cmp {
                Cmp::Lt => found < *value,
                Cmp::Le => found <= *value,
                Cmp::Eq => found == *value,
                Cmp::Ge => found >= *value,
                Cmp::Gt => found > *value,
            }
        }
    }
}

/// Bodies as threads that share the regions of the instance.
async fn parallel(context: &mut Context, bodies: &[Vec<Stmt>]) {
    let sys = context.sys.clone();
    let done = {
        let world = &mut *sys.world();
        world.workload.barriers.push(Barrier {
            parties: bodies.len() as u64 + 1,
            ..Barrier::default()
        });
        world.workload.barriers.len() - 1
    };
    for body in bodies {
        context.threads += 1;
        let mut thread = Context {
            open: Default::default(),
            picks: Default::default(),
            held: Default::default(),
            thread: context.threads,
            answer: None,
            ..context.clone()
        };
        let name = context.program.workload.tasks[context.task].name.clone();
        thread.stream = Stream::new(context.stream.next_u64(), &name, context.threads);
        let body = body.clone();
        let future: BoxFuture = Box::pin(async move {
            let _stopped = run_body(&mut thread, &body).await;
            fileio::close_all(&mut thread).await;
            alloc::free_all(&mut thread);
            barrier::wait(&thread.sys, done).await;
        });
        let world = &mut *sys.world();
        let memcg = world.current_memcg();
        let id = world.spawn(name, false, future);
        world.sched.set_mm(id, context.space);
        world.mm.memcontrol.attach(id, memcg);
    }
    barrier::wait(&sys, done).await;
}

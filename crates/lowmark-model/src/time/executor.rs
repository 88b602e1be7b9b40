//! The loop that polls tasks and fires timers.

use super::{BoxFuture, TaskState};
use crate::world::{Sys, Verdict, World};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Gives control back to the executor once. Whoever awaits it has first said when to go on: through
/// [`Sched::spend`](super::Sched::spend) or [`Sched::block`](super::Sched::block).
#[derive(Debug, Default)]
pub(crate) struct Suspend {
    suspended: bool,
}

impl Future for Suspend {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.suspended {
            return Poll::Ready(());
        }
        self.suspended = true;
        Poll::Pending
    }
}

/// Runs until the workload is over or nothing can happen any more.
///
/// `observe` is called after every interrupt and every time a task gives up control.
pub(crate) fn run_until_idle(sys: &Sys, observe: &mut dyn FnMut(&mut World)) -> Verdict {
    let mut bodies: Vec<Option<BoxFuture>> = Vec::new();
    // Wake-ups go through the scheduler's own queues; wakers carry no news.
    let mut context = Context::from_waker(Waker::noop());
    loop {
        let ready = {
            let world = &mut *sys.world();
            while let Some((id, body)) = world.spawned.take() {
                debug_assert_eq!(
                    bodies.len(),
                    id.0 as usize,
                    "tasks are spawned in order of their ids"
                );
                bodies.push(Some(body));
            }
            if let Some(verdict) = world.verdict() {
                return verdict;
            }
            let ready = world.sched.next_ready();
            world.mounts.changed_by(ready);
            world.mm.cpu = world.sched.current_cpu() as usize;
            ready
        };
        let Some(task) = ready else {
            let world = &mut *sys.world();
            match world.sched.next_timer() {
                None => return world.nothing_comes(),
                Some(None) => continue,
                Some(Some(interrupt)) => world.interrupt(interrupt),
            }
            observe(world);
            continue;
        };
        let body = &mut bodies[task.0 as usize];
        let poll = body.as_mut().map(|b| b.as_mut().poll(&mut context));
        let world = &mut *sys.world();
        if poll.is_some_and(|poll| poll.is_ready()) {
            *body = None;
            world.sched.end_current();
        } else if world.sched.task(task).state == TaskState::Blocked {
            // schedule() submits what a sleeping task has plugged.
            world.flush_plug(task);
        }
        world.sched.end_turn();
        observe(world);
    }
}

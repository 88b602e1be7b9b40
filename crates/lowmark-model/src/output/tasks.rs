//! The tasks of a recording, and the tasks of its events.
//!
//! 1. A process of a `build` that has ended is no task of the recording: its times are its parent's.
//! 2. If there are events of it, it stands behind the others, without times, as who is only known by a guest's trace does.
//! 3. The tasks of events are numbers of tasks of the recording.

use crate::trace::pid;
use crate::world::World;
use lowmark_record::{EventLog, TaskTimes};

/// The tasks, and the events with their numbers.
pub(super) fn with_events(world: &mut World) -> (Vec<TaskTimes>, EventLog) {
    let mut events = world.trace.take();
    let all = world.sched.tasks();
    let mut listed: Vec<usize> = (0..all.len()).filter(|&id| !all[id].reaped).collect();
    let mut tasks: Vec<TaskTimes> = Vec::new();
    for &id in &listed {
        let task = &all[id];
        tasks.push(TaskTimes {
            user_ns: task.user,
            system_ns: task.system,
            ..without_times(world, id)
        });
    }
    if listed.len() < all.len() {
        let mut seen = vec![false; all.len()];
        for event in &events {
            if let Some(seen) = seen.get_mut(event.task as usize) {
                *seen = true;
            }
        }
        let others = (0..all.len()).filter(|&id| all[id].reaped && seen[id]);
        for id in others {
            listed.push(id);
            tasks.push(without_times(world, id));
        }
        let mut numbers = vec![0; all.len()];
        for (number, &id) in listed.iter().enumerate() {
            numbers[id] = number as u32;
        }
        events.renumber(|id| numbers.get(id as usize).copied().unwrap_or(id));
    }
    (tasks, events)
}

/// A task as others have its times.
fn without_times(world: &World, id: usize) -> TaskTimes {
    let task = &world.sched.tasks()[id];
    TaskTimes {
        name: task.name.clone(),
        pid: pid(id),
        kthread: task.kthread,
        user_ns: 0,
        system_ns: 0,
        start_ns: task.start,
        end_ns: task.end,
    }
}

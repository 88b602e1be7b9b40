//! Who gets a CPU, and when: worked by hand from the rules of the classes.

use super::*;
use crate::kernel::{Version, versions};

const TICK: Nanos = 4 * MSEC;
const FIRST: TaskId = TaskId(0);
const SECOND: TaskId = TaskId(1);

/// A machine of so many CPUs, with tasks none of which was woken yet.
fn fair(version: &str, cpus: u32, tasks: u32) -> Fair {
    let kernel = versions::at(Version::known(version).expect("known"));
    let mut fair = Fair::new(cpus, 250, kernel.sched);
    (0..tasks).for_each(|_| fair.add(Weight::NICE_0));
    fair
}

/// One CPU. The second task sleeps since it was there, the first runs from then on.
fn beside_a_sleeper(version: &str) -> Fair {
    let mut fair = fair(version, 1, 2);
    fair.wake(SECOND, 0, 0);
    assert_eq!(fair.pick(0, 0), Some(SECOND));
    fair.sleep(0, 0, false);
    fair.wake(FIRST, 0, 0);
    assert_eq!(fair.pick(0, 0), Some(FIRST));
    fair
}

/// When the second task, which waits, gets the CPU.
fn second_runs(fair: &mut Fair) -> Nanos {
    loop {
        let at = fair.resched_at(0);
        fair.put(0, at);
        if fair.pick(0, at) == Some(SECOND) {
            return at;
        }
    }
}

#[test]
fn a_sleeper_of_cfs_takes_the_cpu_from_who_is_a_granularity_ahead() {
    for version in ["v3.2", "v6.1"] {
        let mut fair = beside_a_sleeper(version);
        // It is put half a latency, 3 ms, behind, which is more than 1 ms.
        fair.wake(SECOND, 0, 50 * MSEC);
        assert_eq!(second_runs(&mut fair), 50 * MSEC);
        // It catches up and sleeps. Less than 1 ms behind it has to wait for a tick that finds the first more
        // than 3 ms ahead; that at 56 ms finds them just so.
        fair.sleep(0, 53 * MSEC, false);
        assert_eq!(fair.pick(0, 53 * MSEC), Some(FIRST));
        fair.wake(SECOND, 0, 53_900_000);
        assert_eq!(second_runs(&mut fair), 60 * MSEC);
    }
}

#[test]
fn a_sleeper_of_eevdf_waits_for_the_end_of_a_slice() {
    for version in ["v6.6", "v6.12", "v6.17"] {
        // The first's deadline, a slice from the tick at 8 ms, comes before that of the second. The first tick
        // past it is at 12 ms.
        let mut fair = beside_a_sleeper(version);
        fair.wake(SECOND, 0, 8_500_000);
        assert_eq!(second_runs(&mut fair), 3 * TICK);
        // At 9 ms it has passed, and with the next one the first is not before the second.
        let mut fair = beside_a_sleeper(version);
        fair.wake(SECOND, 0, 9 * MSEC);
        assert_eq!(second_runs(&mut fair), 9 * MSEC);
    }
}

#[test]
fn a_lazy_kernel_waits_for_user_mode_or_the_next_tick() {
    // As above, where the second would run at 9 ms.
    let mut fair = beside_a_sleeper("v6.18");
    fair.wake(SECOND, 0, 9 * MSEC);
    assert_eq!(fair.resched_at(0), 3 * TICK);
    assert!(!fair.enter_user_mode(0, 9 * MSEC - 1));
    assert!(fair.enter_user_mode(0, 10 * MSEC));
    assert_eq!(second_runs(&mut fair), 10 * MSEC);
    // The tick at 12 ms asks the first, in the kernel until then, to make room, and that at 16 ms makes it.
    let mut fair = beside_a_sleeper("v6.18");
    fair.wake(SECOND, 0, 8_500_000);
    assert!(!fair.enter_user_mode(0, 3 * TICK - 1));
    assert_eq!(second_runs(&mut fair), 4 * TICK);
    // Who has the CPU for itself never makes room.
    let mut fair = beside_a_sleeper("v6.18");
    assert!(!fair.enter_user_mode(0, 100 * MSEC));
}

/// How much of a second of one CPU each of so many tasks gets that do nothing else.
fn shares(version: &str, cpus: u32, tasks: u32) -> Vec<Nanos> {
    let mut fair = fair(version, cpus, tasks);
    let mut had = vec![0; tasks as usize];
    (0..tasks).for_each(|task| fair.wake(TaskId(task), 0, 0));
    let mut on: Vec<_> = (0..cpus as usize)
        .map(|cpu| (fair.pick(cpu, 0), 0))
        .collect();
    loop {
        let due = (0..cpus as usize).min_by_key(|&cpu| fair.resched_at(cpu));
        let cpu = due.expect("there is a CPU");
        let now = fair.resched_at(cpu);
        if now >= crate::time::SECOND {
            return had;
        }
        let (task, since) = on[cpu];
        had[task.expect("it runs").index()] += now - since;
        fair.put(cpu, now);
        on[cpu] = (fair.pick(cpu, now), now);
    }
}

#[test]
fn who_wants_a_cpu_all_the_time_gets_an_equal_share() {
    for version in ["v3.2", "v6.1", "v6.6", "v6.12", "v6.18"] {
        for (cpus, tasks) in [(1, 2), (1, 3), (1, 11), (2, 3), (4, 4 + 9)] {
            let shares = shares(version, cpus, tasks);
            let (least, most) = (shares.iter().min(), shares.iter().max());
            let (least, most) = (least.expect("some"), most.expect("some"));
            assert!(
                most - least <= 4 * TICK,
                "{version}, {tasks} on {cpus}: {shares:?}"
            );
        }
    }
}

/// As who sleeps all the time but for a moment in each tick, beside one that never does: the longest that it
/// waits for the CPU.
fn longest_wait(version: &str, burst: Nanos) -> Nanos {
    let mut fair = beside_a_sleeper(version);
    let mut longest = 0;
    for round in 1..100 {
        let woken = round * 5 * TICK + MSEC;
        fair.wake(SECOND, 0, woken);
        let now = second_runs(&mut fair);
        longest = longest.max(now - woken);
        fair.sleep(0, now + burst, false);
        assert_eq!(fair.pick(0, now + burst), Some(FIRST));
    }
    longest
}

#[test]
fn who_needs_little_waits_no_longer_than_a_tick() {
    assert_eq!(longest_wait("v6.1", MSEC / 4), 0);
    for version in ["v6.6", "v6.12", "v6.18"] {
        assert!(longest_wait(version, MSEC / 4) <= TICK, "{version}");
    }
}

#[test]
fn who_had_more_than_its_share_makes_up_for_it_before_it_sleeps() {
    // Both begin; the first runs for a tick, and goes to sleep with 2 ms more than the average.
    let lag = |version| {
        let mut fair = fair(version, 1, 2);
        fair.wake(FIRST, 0, 0);
        assert_eq!(fair.pick(0, 0), Some(FIRST));
        fair.wake(SECOND, 0, 0);
        fair.sleep(0, TICK, false);
        let waits = fair.queue.len();
        assert_eq!(fair.pick(0, TICK), Some(SECOND));
        // The second has caught up at two ticks, sleeps in its turn, and the CPU is idle.
        fair.sleep(0, 3 * TICK, false);
        assert_eq!(fair.pick(0, 3 * TICK), None);
        (waits, fair.entities[FIRST.index()].lag)
    };
    assert_eq!(lag("v6.6"), (1, -2 * (MSEC as Virtual)));
    assert_eq!(lag("v6.12"), (2, 0));
}

/// The weights of nice -20 and 0 are 88,761 and 1,024 (`sched_prio_to_weight`): of what both want all the time the worker
/// has 86 parts of 87.
#[test]
fn a_worker_of_high_priority_has_what_its_weight_says() {
    for version in ["v5.0", "v6.1"] {
        let mut fair = fair(version, 1, 1);
        fair.add(Weight::HIGHPRI);
        fair.wake(FIRST, 0, 0);
        fair.wake(SECOND, 0, 0);
        let mut had = [0, 0];
        let mut now = 0;
        while now < 100 * crate::time::SECOND {
            let task = fair.pick(0, now).expect("two want it");
            let at = fair.resched_at(0);
            had[task.index()] += at - now;
            fair.put(0, at);
            now = at;
        }
        let parts = had[1] / had[0];
        assert!((80..=92).contains(&parts), "{version}: {parts} to 1");
    }
}

/// It takes the CPU at once from a task that runs, however short it has slept, and leaves the task's share as it was.
#[test]
fn a_worker_of_high_priority_takes_the_cpu_when_woken() {
    for version in ["v5.0", "v6.1", "v6.12"] {
        let mut fair = fair(version, 1, 1);
        fair.add(Weight::HIGHPRI);
        fair.wake(SECOND, 0, 0);
        assert_eq!(fair.pick(0, 0), Some(SECOND));
        fair.sleep(0, 0, false);
        fair.wake(FIRST, 0, 0);
        assert_eq!(fair.pick(0, 0), Some(FIRST));
        for work in 1..20 {
            let woken = work * MSEC;
            fair.wake(SECOND, 0, woken);
            assert_eq!(fair.resched_at(0), woken, "{version}: {work}");
            fair.put(0, woken);
            assert_eq!(fair.pick(0, woken), Some(SECOND), "{version}: {work}");
            fair.sleep(0, woken + 50_000, false);
            assert_eq!(fair.pick(0, woken + 50_000), Some(FIRST));
        }
    }
}

//! How many touches a workload will make, as far as that can be told without running it: by it the time
//! to go of a run is estimated.
//!
//! Every body is walked once with the lengths of its maps. A loop without a fixed number of rounds, or
//! an end by time, leaves the number open, unless nothing is touched there.

use crate::machine::PAGE_SIZE;
use crate::workload::{Amount, End, MapId, Op, Range, Start, Stmt, Times, Workload};

/// Touches, and the maps as the body leaves them.
struct Walk {
    /// Length of each map, bytes; 0 if it is not there.
    lengths: Vec<u64>,
    /// Instances of each task that were started.
    spawned: Vec<u64>,
}

impl Workload {
    /// Number of touches of a whole run; none if it depends on time or on what happens in the run. Tasks
    /// that are killed count as if they were not.
    pub fn touches_expected(&self) -> Option<u64> {
        let mut spawned = vec![0; self.tasks.len()];
        let mut touches = Vec::with_capacity(self.tasks.len());
        for task in &self.tasks {
            let mut instances = Vec::with_capacity(task.instances.len());
            for body in &task.instances {
                let mut walk = Walk {
                    lengths: vec![0; task.maps.len()],
                    spawned: vec![0; self.tasks.len()],
                };
                instances.push(walk.body(body));
                for (total, more) in spawned.iter_mut().zip(&walk.spawned) {
                    *total = more.checked_add(*total)?;
                }
            }
            touches.push(instances);
        }
        let mut total = 0u64;
        for ((task, instances), spawned) in self.tasks.iter().zip(touches).zip(spawned) {
            let started = match task.start {
                Start::AtBegin => instances.len(),
                Start::Spawned => usize::try_from(spawned).unwrap_or(usize::MAX),
            };
            for touches in instances.into_iter().take(started) {
                total = total.checked_add(touches?)?;
            }
        }
        match self.end {
            End::After(_) if total > 0 => None,
            _ => Some(total),
        }
    }
}

impl Walk {
    fn body(&mut self, body: &[Stmt]) -> Option<u64> {
        // Every statement is walked even after one that leaves the number open: a map may follow.
        let touches: Vec<Option<u64>> = body.iter().map(|stmt| self.statement(&stmt.op)).collect();
        let add = |sum: u64, touches: Option<u64>| sum.checked_add(touches?);
        touches.into_iter().try_fold(0, add)
    }

    fn statement(&mut self, op: &Op) -> Option<u64> {
        match op {
            Op::Map { map, length, .. } => {
                self.set(*map, *length);
                Some(0)
            }
            Op::Touch { map, what } => match what.amount {
                Amount::Count(count) => Some(count),
                Amount::Passes(passes) => {
                    self.units(*map, what.range, what.step).checked_mul(passes)
                }
            },
            Op::Memset { map, range } => Some(self.units(*map, *range, PAGE_SIZE)),
            Op::Spawn { task, count } => {
                let spawned = self.spawned.get_mut(*task)?;
                *spawned = spawned.checked_add(*count)?;
                Some(0)
            }
            Op::Repeat { times, body } => self.repeat(*times, body),
            Op::Until { body, .. } => self.body(body).filter(|touches| *touches == 0),
            Op::Sample { body, .. } => self.body(body),
            Op::Parallel { bodies } => {
                let touches: Vec<Option<u64>> = bodies.iter().map(|body| self.body(body)).collect();
                touches.into_iter().sum()
            }
            _ => Some(0),
        }
    }

    fn repeat(&mut self, times: Times, body: &[Stmt]) -> Option<u64> {
        let before = self.spawned.clone();
        let touches = self.body(body)?;
        let Times::Count(rounds) = times else {
            return Some(touches).filter(|touches| *touches == 0);
        };
        for (spawned, before) in self.spawned.iter_mut().zip(before) {
            let in_a_round = *spawned - before;
            *spawned = in_a_round.checked_mul(rounds)?.checked_add(before)?;
        }
        touches.checked_mul(rounds)
    }

    fn set(&mut self, map: MapId, length: u64) {
        if let Some(slot) = self.lengths.get_mut(map) {
            *slot = length;
        }
    }

    fn units(&self, map: MapId, range: Option<Range>, step: u64) -> u64 {
        let whole = self.lengths.get(map).copied().unwrap_or(0);
        range
            .map_or(whole, |range| range.length)
            .div_ceil(step.max(1))
    }
}

#[cfg(test)]
mod tests {
    use crate::{BuiltIn, Overrides, Source, parse};

    fn touches(text: &str) -> Option<u64> {
        let head = "lowmark = 1\n[workload]\nname = \"w\"\n[machine]\nuse = \"small-512m-ssd\"\n\
            [kernel]\nuse = \"v3.6\"\n";
        let source = Source {
            name: "w.toml".into(),
            text: format!("{head}{text}"),
        };
        let scenarios = parse(&source, &BuiltIn, &Overrides::default());
        let scenarios = scenarios.unwrap_or_else(|error| panic!("{}", error.render_plain()));
        scenarios[0].workload.touches_expected()
    }

    const MAP: &str = r#"{ map = "m", kind = "anon-private", size = "100p" }"#;
    const PASS: &str = r#"{ touch = "m", access = "read" }"#;

    #[test]
    fn passes_counts_and_ranges() {
        let run = |touch: &str| touches(&format!("[task.a]\nrun = [{MAP}, {touch}]\n"));
        assert_eq!(run(PASS), Some(100));
        assert_eq!(
            run(r#"{ touch = "m", access = "read", passes = 3, step = "2K" }"#),
            Some(600)
        );
        assert_eq!(
            run(r#"{ touch = "m", access = "read", count = 7 }"#),
            Some(7)
        );
        assert_eq!(
            run(r#"{ touch = "m", access = "read", offset = "90p" }"#),
            Some(10)
        );
        assert_eq!(run(r#"{ memset = "m" }"#), Some(100));
    }

    #[test]
    fn loops_and_instances() {
        let run =
            |task: &str, body: &str| touches(&format!("[task.a]\n{task}\nrun = [{MAP}, {body}]\n"));
        let sample = format!(r#"{{ repeat = 4, do = [{{ sample = "s", do = [{PASS}] }}] }}"#);
        assert_eq!(run("processes = 2", &sample), Some(800));
        assert_eq!(
            run("", &format!("{{ parallel = [[{PASS}], [{PASS}]] }}")),
            Some(200)
        );
        assert_eq!(
            run(
                "",
                &format!(r#"{{ repeat = {{ for = "1s" }}, do = [{PASS}] }}"#)
            ),
            None
        );
        let idle = r#"{ repeat = { for = "1s" }, do = [{ sleep = "1ms" }] }"#;
        assert_eq!(run("", idle), Some(0));
        assert_eq!(
            run(
                "",
                &format!(r#"{{ until = "kswapd-idle", do = [{PASS}] }}"#)
            ),
            None
        );
    }

    #[test]
    fn spawned_tasks_count_as_often_as_they_are_started() {
        let task = format!("[task.b]\nprocesses = 5\nstart = \"spawned\"\nrun = [{MAP}, {PASS}]\n");
        let run = |body: &str| touches(&format!("[task.a]\nrun = [{body}]\n{task}"));
        assert_eq!(
            run(r#"{ spawn = "b", count = 3 }, { wait = "b" }"#),
            Some(300)
        );
        let twice = r#"{ repeat = 2, do = [{ spawn = "b" }] }, { wait = "b" }"#;
        assert_eq!(run(twice), Some(200));
    }

    #[test]
    fn an_end_by_time_leaves_it_open() {
        let text = format!("[task.a]\nrun = [{MAP}, {PASS}]\n");
        let source = |end: &str| {
            let head = format!("lowmark = 1\n[workload]\nname = \"w\"\nend = {end}\n");
            let rest = "[machine]\nuse = \"small-512m-ssd\"\n[kernel]\nuse = \"v3.6\"\n";
            Source {
                name: "w.toml".into(),
                text: format!("{head}{rest}{text}"),
            }
        };
        let expected = |end: &str| {
            let scenarios = parse(&source(end), &BuiltIn, &Overrides::default());
            scenarios.expect("a workload")[0]
                .workload
                .touches_expected()
        };
        assert_eq!(expected(r#"{ after = "1s" }"#), None);
        assert_eq!(expected(r#""kswapd-idle""#), Some(100));
    }
}

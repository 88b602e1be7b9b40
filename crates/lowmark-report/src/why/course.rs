//! What the answer rests on as plots: how reclaim and dirty throttling went over time, with the longest waits below.

use super::answer::{Answer, Stall};
use super::words::time;
use crate::dirty::DirtyReport;
use crate::plot::{Bar, Plot};
use crate::reclaim::ReclaimFigures;

impl Answer {
    /// The plots of a capture, of the same events as the answer. The waits are below the first of them.
    pub fn plots(&self, reclaim: &ReclaimFigures, dirty: &DirtyReport) -> Vec<Plot> {
        let mut waits = self.bars();
        let mut plots = Vec::new();
        if let Some(course) = reclaim.course(waits.clone()) {
            plots.push(Plot::Course(course));
            waits.clear();
        }
        plots.extend(dirty.course(waits).map(Plot::Course));
        plots
    }

    /// The longest waits by their begin.
    fn bars(&self) -> Vec<Bar> {
        let mut stalls: Vec<&Stall> = self.stalls.iter().collect();
        stalls.sort_by_key(|stall| stall.wait.begin_ns);
        let bar = |stall: &Stall| {
            let wait = &stall.wait;
            let begin_s = wait.begin_ns as f64 / 1e9;
            Bar {
                name: format!("{} {}", stall.task, time(wait.length_ns())),
                begin_s,
                end_s: begin_s + wait.length_ns() as f64 / 1e9,
            }
        };
        stalls.into_iter().map(bar).collect()
    }
}

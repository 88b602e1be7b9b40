//! How far the runs are, on stderr, if that is a terminal.

use crate::output;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use lowmark_model::Progress;
use lowmark_spec::Workload;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Least time between two updates of a line.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// The lines: one for each run under way, one for the whole.
pub(crate) struct Display {
    lines: MultiProgress,
    whole: Option<ProgressBar>,
}

/// The line of one run.
pub(crate) struct Line {
    bar: ProgressBar,
    start: Instant,
    updated: Instant,
}

impl Display {
    /// For so many runs.
    pub(crate) fn new(runs: usize, quiet: bool) -> Display {
        let target = if quiet || !std::io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let lines = MultiProgress::with_draw_target(target);
        let whole = (runs > 1).then(|| {
            let bar = ProgressBar::new(runs as u64);
            bar.set_style(style(
                "{pos} of {len} runs, {elapsed} {bar:20}",
                "{pos:.bold} of {len:.bold} runs, {elapsed} {bar:20.green}",
            ));
            lines.add(bar)
        });
        if let Some(whole) = &whole {
            whole.enable_steady_tick(Duration::from_secs(1));
        }
        Display { lines, whole }
    }

    /// A run begins.
    pub(crate) fn begin(&self, name: &str, workload: &Workload) -> Line {
        let bar = match workload.touches_expected() {
            Some(touches) => {
                let bar = ProgressBar::new(touches);
                bar.set_style(style(
                    "{bar:20} {eta:>4} to go, {prefix}  {wide_msg}",
                    "{bar:20.cyan} {eta:>4} to go, {prefix}  {wide_msg}",
                ));
                bar
            }
            None => spinner(),
        };
        self.line(bar, "starting", name)
    }

    /// A run in a guest begins: how far it is, only its end says.
    pub(crate) fn begin_guest(&self, name: &str) -> Line {
        let line = self.line(spinner(), "in a guest", name);
        line.bar.enable_steady_tick(UPDATE_INTERVAL);
        line
    }

    fn line(&self, bar: ProgressBar, prefix: &'static str, name: &str) -> Line {
        let bar = match &self.whole {
            Some(whole) => self.lines.insert_before(whole, bar),
            None => self.lines.add(bar),
        };
        bar.set_prefix(prefix);
        bar.set_message(name.to_owned());
        let now = Instant::now();
        Line {
            bar,
            start: now,
            updated: now,
        }
    }

    /// A run is over.
    pub(crate) fn end(&self, line: Line) {
        line.bar.finish_and_clear();
        self.lines.remove(&line.bar);
        if let Some(whole) = &self.whole {
            whole.inc(1);
        }
    }

    /// All runs are over.
    pub(crate) fn finish(self) {
        if let Some(whole) = &self.whole {
            whole.finish_and_clear();
        }
    }
}

impl Line {
    /// The run has come so far.
    pub(crate) fn update(&mut self, progress: Progress) {
        if self.bar.is_hidden() || self.updated.elapsed() < UPDATE_INTERVAL {
            return;
        }
        self.updated = Instant::now();
        let seconds = self.start.elapsed().as_secs_f64();
        let virtual_s = progress.virtual_ns as f64 / 1e9;
        let rate = progress.faults as f64 / seconds / 1e6;
        self.bar
            .set_prefix(format!("{virtual_s:.1} s virtual, {rate:.2} M faults/s"));
        self.bar.set_position(progress.touches);
    }
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_style(style(
        "{spinner} {elapsed}, {prefix}  {wide_msg}",
        "{spinner:.cyan} {elapsed}, {prefix}  {wide_msg}",
    ));
    bar
}

/// The plain template or the one with colour.
fn style(plain: &str, colour: &str) -> ProgressStyle {
    let template = if output::color(true) { colour } else { plain };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_progress_takes_everything() {
        let scenario = lowmark_model::example_scenario();
        let display = Display::new(2, true);
        let mut line = display.begin("example", &scenario.workload);
        line.update(Progress {
            virtual_ns: 1,
            faults: 1,
            touches: 1,
        });
        display.end(line);
        display.finish();
    }
}

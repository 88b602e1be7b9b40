//! The controller of dirty throttling against real kernels, look by look: what a kernel's tracepoints say of
//! its inputs goes in, and what it did with them must come out.
//!
//! 1. `balance_dirty_pages` names the dirty pages, their limits and the base rate: the model's position ratio
//!    gives the task's rate, that gives the pause, and the next look of the task shows after how many pages
//!    it was to come.
//! 2. `bdi_dirty_ratelimit` names bandwidth and rate of dirtying: the model's step gives the base rate.
//!
//! The write bandwidth is only known at the latter events; in between, that of the next one is taken.

use lowmark_model::estimate::{Estimate, Step};
use lowmark_model::kernel::versions::at;
use lowmark_model::kernel::{BalancedRate, Mechanisms, Version};
use lowmark_model::position::Position;
use lowmark_model::{pause, thresholds::Thresholds};
use lowmark_record::{Event, Field, Kind, Sink, Tables};
use lowmark_trace::input::Input;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Kernels of the captures have this timer frequency.
const HZ: u64 = 250;

/// Events of writeback, in the order of the trace.
#[derive(Default)]
struct Keep(Vec<Event>);

impl Sink for Keep {
    fn event(&mut self, event: &Event, _: &Tables) {
        let kept = [
            Kind::BalanceDirtyPages,
            Kind::BdiDirtyRatelimit,
            Kind::GlobalDirtyState,
        ];
        if kept.contains(&event.kind) {
            self.0.push(*event);
        }
    }
}

/// Captures with throttled writers: name, version of the kernel, events.
fn captures() -> Vec<(String, &'static str, Vec<Event>)> {
    let directory = std::env::var_os("LOWMARK_CAPTURES").expect(".cargo/config.toml sets it");
    let entries = std::fs::read_dir(directory).expect("the captures");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort();
    let mut captures = Vec::new();
    for path in paths {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !name.ends_with(".trace.txt.xz") {
            continue;
        }
        let about = path.with_file_name(name.replace(".trace.txt.xz", ".toml"));
        let about: toml::Table = match std::fs::read_to_string(about) {
            Ok(text) => text.parse().expect("TOML"),
            Err(_) => continue,
        };
        let kernel = about["kernel"].as_str().expect("a kernel");
        let version = ["6.1.", "6.12.", "6.18."]
            .into_iter()
            .find(|known| kernel.starts_with(known));
        let Some(version) = version else {
            continue;
        };
        let mut keep = Keep::default();
        lowmark_trace::read(Input::open(&path).expect("readable"), &mut keep).expect("a trace");
        if keep
            .0
            .iter()
            .any(|event| event.kind == Kind::BalanceDirtyPages)
        {
            captures.push((name, version.trim_end_matches('.'), keep.0));
        }
    }
    captures
}

fn field(event: &Event, field: Field) -> u64 {
    event
        .get(field)
        .unwrap_or_else(|| panic!("{field:?} of {event:?}"))
}

/// KiB a second to pages a second.
fn rate(event: &Event, of: Field) -> u64 {
    field(event, of) / 4
}

fn jiffies(ms: i64) -> i64 {
    ms * HZ as i64 / 1000
}

/// How far the model is off, in thousandths of what the kernel had.
#[derive(Default)]
struct Errors(Vec<u64>);

impl Errors {
    fn add(&mut self, model: u64, kernel: u64) {
        self.0.push(model.abs_diff(kernel) * 1000 / kernel.max(1));
    }

    fn quantile(&mut self, percent: usize) -> u64 {
        self.0.sort_unstable();
        self.0[(self.0.len() - 1) * percent / 100]
    }
}

/// What the kernel's looks are judged by.
struct Judge {
    mechanisms: Mechanisms,
    rate: Errors,
    pause: Errors,
    /// Looks whose pages until the next one are those of the model, and all of them.
    pages: (usize, usize),
    /// Steps of the base rate that are those of the model, and all of them.
    steps: (usize, usize),
}

impl Judge {
    fn new(version: &str) -> Judge {
        Judge {
            mechanisms: at(Version::known(version).expect("a version of the model")),
            rate: Errors::default(),
            pause: Errors::default(),
            pages: (0, 0),
            steps: (0, 0),
        }
    }

    fn position(&self, event: &Event, thresholds: &Thresholds) -> Position {
        let (setpoint, limit) = (field(event, Field::Setpoint), field(event, Field::Limit));
        let shown = field(event, Field::BdiSetpoint) * (thresholds.dirty + 1);
        Position {
            thresh: thresholds.dirty,
            bg_thresh: thresholds.background,
            dirty: field(event, Field::Dirty),
            limit: limit.max(thresholds.dirty),
            bdi_thresh: shown.div_ceil(setpoint.max(1)),
            bdi_dirty: field(event, Field::BdiDirty),
            strict: false,
        }
    }

    /// A look: the pages until the next one if the writer paused.
    fn look(&mut self, event: &Event, thresholds: &Thresholds, bandwidth: u64) -> Option<u64> {
        let position = self.position(event, thresholds);
        let base = rate(event, Field::DirtyRatelimit);
        let estimate = Estimate::of(bandwidth, base, base);
        let ratio = position.ratio(bandwidth, &self.mechanisms);
        let task_ratelimit = (estimate.dirty_ratelimit * ratio) >> 10;
        let kernel = rate(event, Field::TaskRatelimit);
        self.rate.add(task_ratelimit, kernel);
        let longest = pause::think_max_pause(&estimate, position.bdi_dirty, HZ);
        let target = pause::think_min_pause(&estimate, kernel, longest, HZ);
        let think = jiffies(event.signed(Field::Think).expect("think"));
        let period = match task_ratelimit {
            0 => longest,
            rate => HZ * field(event, Field::Dirtied) / rate,
        };
        let wanted = match task_ratelimit {
            0 => longest as i64,
            _ => period as i64 - think,
        };
        let paused = if wanted < target.min_pause as i64 {
            wanted.min(0)
        } else {
            wanted.min(longest as i64)
        };
        let kernel = jiffies(event.signed(Field::Pause).expect("pause"));
        // Pauses are whole jiffies; half of one is no error.
        self.pause
            .add((2 * paused.max(0)) as u64, (2 * kernel.max(0)) as u64);
        (kernel > 0).then_some(target.pages)
    }

    /// A step of the base rate, `before` of which was `event`; `look` is that of the same writer.
    fn step(&mut self, before: &Event, event: &Event, look: &Event, thresholds: &Thresholds) {
        let mut estimate = Estimate::of(
            rate(event, Field::AwriteBw),
            rate(before, Field::DirtyRatelimit),
            rate(before, Field::BalancedDirtyRatelimit),
        );
        let step = Step {
            dirty_rate: rate(event, Field::DirtyRate),
            task_ratelimit: rate(event, Field::TaskRatelimit),
        };
        let position = self.position(look, thresholds);
        estimate.follow(&position, &step, BalancedRate::BelowBandwidth);
        let model = (estimate.dirty_ratelimit, estimate.balanced_dirty_ratelimit);
        let kernel = (
            rate(event, Field::DirtyRatelimit),
            rate(event, Field::BalancedDirtyRatelimit),
        );
        self.steps.0 += usize::from(model == kernel);
        self.steps.1 += 1;
    }

    fn all(&mut self, events: &[Event]) {
        let mut thresholds = Thresholds::default();
        let mut step: Option<&Event> = None;
        let mut expected: BTreeMap<u32, u64> = BTreeMap::new();
        for (number, event) in events.iter().enumerate() {
            let rest = &events[number + 1..];
            match event.kind {
                Kind::GlobalDirtyState => {
                    thresholds = Thresholds {
                        background: field(event, Field::BgThresh),
                        dirty: field(event, Field::Thresh),
                    };
                }
                Kind::BdiDirtyRatelimit => {
                    let mut looks = rest.iter().filter(|other| {
                        other.kind == Kind::BalanceDirtyPages && other.task == event.task
                    });
                    if let (Some(before), Some(look)) = (step, looks.next()) {
                        self.step(before, event, look, &thresholds);
                    }
                    step = Some(event);
                }
                _ => {
                    let next = rest
                        .iter()
                        .find(|other| other.kind == Kind::BdiDirtyRatelimit);
                    let bandwidth = next
                        .or(step)
                        .map_or(25_600, |event| rate(event, Field::AwriteBw));
                    if let Some(pages) = expected.remove(&event.task) {
                        let kernel = field(event, Field::DirtiedPause);
                        // A look below the ceiling, which leaves no event, made it a power of two.
                        let freerun = pages != kernel && kernel.is_power_of_two();
                        self.pages.0 += usize::from(pages == kernel);
                        self.pages.1 += usize::from(!freerun);
                    }
                    if let Some(pages) = self.look(event, &thresholds, bandwidth) {
                        expected.insert(event.task, pages);
                    }
                }
            }
        }
    }
}

#[test]
fn the_controller_does_what_real_kernels_do() {
    let captures = captures();
    assert!(captures.len() >= 2, "captures with throttled writers");
    for (name, version, events) in captures {
        let mut judge = Judge::new(version);
        judge.all(&events);
        let (rates, pauses) = (judge.rate.0.len(), judge.pause.0.len());
        let text = format!(
            "{name}: {rates} looks; error of the task's rate in 1/1000: median {}, 90 % {}, 99 % {}; of {pauses} \
             pauses: median {}, 90 % {}, 99 % {}; pages until the next look: {} of {}; steps of the base rate: {} of {}",
            judge.rate.quantile(50),
            judge.rate.quantile(90),
            judge.rate.quantile(99),
            judge.pause.quantile(50),
            judge.pause.quantile(90),
            judge.pause.quantile(99),
            judge.pages.0,
            judge.pages.1,
            judge.steps.0,
            judge.steps.1,
        );
        println!("{text}");
        assert!(judge.rate.quantile(99) <= 10, "{text}");
        assert!(judge.pause.quantile(90) == 0, "{text}");
        assert!(judge.pages.0 * 100 >= judge.pages.1 * 80, "{text}");
        assert!(judge.steps.0 == judge.steps.1, "{text}");
    }
}

//! Which settings are asked about where none was named: those that users turn, and that `whatif` was judged by.

use super::known::{Side, recorded_reserve};
use lowmark_record::{Recording, Release};
use lowmark_spec::machine::PAGE_SIZE;

/// Sizes of memory that are asked about, percent of what there was.
const MEMORY: [u64; 3] = [110, 125, 150];
/// The most that `watermark_scale_factor` takes (`sysctl_vals`, kernel/sysctl.c).
const SCALE_MAX: u64 = 1000;
/// The first version that has it (795ae7a0de6b).
const SCALE_SINCE: Release = Release::new(4, 6);
/// Values that kernels have by default.
const SCALE: u64 = 10;
const CLUSTER: u64 = 3;

/// A setting that is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Knob {
    /// Its name after --set.
    pub(super) name: &'static str,
    pub(super) value: String,
    /// It is more memory.
    pub(super) is_memory: bool,
}

/// The settings that are asked about for a recording. In a memory cgroup its limit makes memory short, and not the watermarks.
pub(super) fn knobs(recording: &Recording, was: &Side) -> Vec<Knob> {
    let mut knobs = Vec::new();
    let mib = |bytes: u64| format!("{}M", bytes.div_ceil(1 << 20));
    let (name, bytes) = match &was.around {
        Some(around) => ("memory.max", around.memory),
        None => ("ram", was.memory() * PAGE_SIZE),
    };
    // On several nodes `ram` would make one of them.
    if was.around.is_some() || was.machine.nodes.len() == 1 {
        knobs.extend(MEMORY.map(|percent| Knob {
            name,
            value: mib(bytes / 100 * percent),
            is_memory: true,
        }));
    }
    let mut ask = |name, value: u64| {
        knobs.push(Knob {
            name,
            value: value.to_string(),
            is_memory: false,
        });
    };
    let present = |name: &str, usual| {
        let text = was.kernel.sysctl.get(name);
        text.and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let cluster = present("page_cluster", CLUSTER);
    for value in [0, 5].into_iter().filter(|&value| value != cluster) {
        ask("page_cluster", value);
    }
    if was.around.is_none() {
        let scale = present("watermark_scale_factor", SCALE);
        let has_scale = version(was).is_some_and(|version| version >= SCALE_SINCE);
        let mut scales = [5, 20].map(|times| (scale * times).min(SCALE_MAX)).to_vec();
        scales.dedup();
        for value in scales
            .into_iter()
            .filter(|&value| has_scale && value != scale)
        {
            ask("watermark_scale_factor", value);
        }
        if let Some(reserve) = recorded_reserve(recording) {
            ask("min_free_kbytes", reserve * 4);
        }
    }
    knobs
}

fn version(was: &Side) -> Option<Release> {
    was.kernel.version.parse().ok()
}

//! Settings of the kernel that matter to a load.

use super::Class;
use crate::random::Stream;

/// A setting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Knob {
    /// Its name under /proc/sys/vm, with underscores.
    pub(super) name: &'static str,
    /// The value that kernels have of themselves, or one near it, and another.
    pub(super) values: [u64; 2],
    /// Which of them a load has that runs with one.
    pub(super) chosen: usize,
}

/// Whom a setting matters to.
#[derive(Clone, Copy)]
enum For {
    All,
    Anonymous,
    Writers,
}

/// A setting with its usual value and others. `min_free_kbytes` has no usual value: kernels compute it, some 1.8 MB
/// for 256 MB of RAM.
const KNOBS: [(&str, For, u64, &[u64]); 8] = [
    ("swappiness", For::All, 60, &[1, 20, 100, 180]),
    ("watermark_scale_factor", For::All, 10, &[50, 200]),
    ("watermark_boost_factor", For::All, 15_000, &[0]),
    ("min_free_kbytes", For::All, 2048, &[1024, 8192]),
    ("page_cluster", For::Anonymous, 3, &[0, 1, 5]),
    ("dirty_ratio", For::Writers, 20, &[5, 40]),
    ("dirty_background_ratio", For::Writers, 10, &[2, 25]),
    ("dirty_expire_centisecs", For::Writers, 3000, &[200]),
];

/// Draws a setting for a load with tasks of these classes.
pub(super) fn draw(classes: &[Class], stream: &mut Stream) -> Knob {
    let matters = |whom: For| match whom {
        For::All => true,
        For::Anonymous => classes.iter().any(|class| class.is_anonymous()),
        For::Writers => classes.contains(&Class::Write),
    };
    let fitting: Vec<_> = KNOBS.iter().filter(|knob| matters(knob.1)).collect();
    let (name, _, usual, others) = fitting[stream.below(fitting.len() as u64) as usize];
    let other = others[stream.below(others.len() as u64) as usize];
    Knob {
        name,
        values: [*usual, other],
        chosen: stream.below(2) as usize,
    }
}

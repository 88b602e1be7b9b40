//! A guest with 256 MB, as 6.18 found it.

use lowmark_model::{Options, run};
use lowmark_record::{Outcome, Recording};

/// What these tasks do there, with so many CPUs and pages in use before them.
pub(crate) fn record(
    kernel: &str,
    cpus: u32,
    occupied: u64,
    tasks: &str,
    options: &Options,
) -> Recording {
    let text = format!(
        r#"
lowmark = 1
[workload]
name = "test"
title = "test"
[machine]
use = "guest-256m"
cpus = {cpus}
occupied = "{occupied}p"
zone = [
  {{ kind = "DMA", present = "3998p", managed = "3840p" }},
  {{ kind = "DMA32", present = "61405p", managed = "50246p", initmem = "3330p" }},
]
[kernel]
use = "{kernel}"
{tasks}
"#
    );
    let scenario = super::scenarios(text).remove(0);
    let recording = run(&scenario, options, &mut |_| {}).expect("it can run");
    assert_eq!(recording.outcome, Outcome::Completed, "{kernel}");
    recording
}

/// Events, and no checks.
pub(crate) const EVENTS: Options = Options {
    events: true,
    check_every: 0,
};

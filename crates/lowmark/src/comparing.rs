//! What kernels side by side have in common, so that they differ in what they decide alone.
//!
//! 1. What the model leaves out of one of them it leaves out of all: otherwise a column would show how the model has
//!    grown, not what the kernel has changed. It is noted among the parameters of the runs, and so in the title.
//! 2. Each is run several times, on as many boots of the machine, so that a difference can be told from noise.

use lowmark_model::kernel::coverage::{PREFIX, SWITCHED};
use lowmark_model::kernel::{Coverage, Kernel};
use lowmark_record::Recording;
use lowmark_spec::Scenario;

/// Repeats of each run at least, unless `--repeat` says otherwise: with fewer no difference is beyond noise for sure.
const REPEATS_MIN: u64 = 5;
/// Repeats of short runs.
const REPEATS_MAX: u64 = 10;
/// Touches of all runs together up to which there are more than the least: some seconds.
const TOUCHES_MAX: u64 = 20_000_000;

/// Name of the parameter that says what was left out of all columns.
const LEFT_OUT: &str = "left-out";

/// How often each run is repeated. It follows from the workload alone, so that the result does, too.
pub(crate) fn repeats(scenarios: &[Scenario]) -> u64 {
    let touches = |scenario: &Scenario| scenario.workload.touches_expected();
    let all: Option<u64> = scenarios.iter().map(touches).sum();
    match all {
        // Unknown, or files alone: some of these are long.
        None | Some(0) => REPEATS_MIN,
        Some(all) => (TOUCHES_MAX / all).clamp(REPEATS_MIN, REPEATS_MAX),
    }
}

/// Takes out of every kernel what the model leaves out of one of them.
pub(crate) fn align(scenarios: &mut [Scenario]) {
    let coverage = |scenario: &Scenario| Kernel::resolve(&scenario.kernel).ok()?.coverage.into();
    let all: Vec<Coverage> = scenarios.iter().filter_map(coverage).collect();
    let has = |subject: &str| {
        all.iter()
            .filter(|it| it.get(subject) == Some(true))
            .count()
    };
    let asked = |subject: &str| {
        let setting = format!("{PREFIX}{subject}");
        scenarios
            .iter()
            .any(|it| it.kernel.sysctl.contains_key(&setting))
    };
    let uneven = SWITCHED
        .iter()
        .map(|subject| subject.name)
        .filter(|&subject| {
            // Groups there are in a workload or not; a kernel that cannot have them is refused.
            let chosen = subject == "memory_cgroups" || asked(subject);
            !chosen && has(subject) > 0 && has(subject) < all.len()
        });
    let uneven: Vec<&str> = uneven.collect();
    if uneven.is_empty() {
        return;
    }
    for scenario in scenarios {
        for subject in &uneven {
            let setting = format!("{PREFIX}{subject}");
            scenario.kernel.sysctl.insert(setting, "off".to_owned());
        }
        let note = (LEFT_OUT.to_owned(), uneven.join("+"));
        scenario.params.push(note);
    }
}

/// What recordings that were made apart have that others of them have not, in a sentence for each column; nothing if
/// they are alike.
pub(crate) fn uneven_coverage(columns: &[(&str, &Recording)]) -> Vec<String> {
    let lists: Vec<&Vec<String>> = columns.iter().map(|(_, it)| &it.run.left_out).collect();
    let lacks = |subject: &String| lists.iter().filter(|list| list.contains(subject)).count();
    let mut sentences = Vec::new();
    for (name, recording) in columns {
        let own = recording.run.left_out.iter();
        let uneven: Vec<&str> = own
            .filter(|subject| lacks(subject) < lists.len())
            .map(String::as_str)
            .collect();
        if !uneven.is_empty() {
            sentences.push(format!(
                "{name}: the model leaves out {}, which other columns have: not all of a difference is the kernel's \
                 (`lowmark list coverage`)",
                uneven.join(", ")
            ));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_model::kernel::versions::{HISTORY, altered_by};
    use lowmark_model::kernel::{Version, versions};
    use lowmark_spec::KernelSpec;

    fn scenario(version: &Version) -> Scenario {
        let mut scenario = lowmark_model::example_scenario();
        scenario.kernel = KernelSpec::parse(&version.to_string()).expect("a release");
        scenario
    }

    /// Whatever two releases in a row differ in is what rows of the history change in the later one.
    #[test]
    fn every_step_is_what_the_history_says() {
        for pair in versions().windows(2) {
            let mut scenarios = [scenario(&pair[0]), scenario(&pair[1])];
            align(&mut scenarios);
            let kernel =
                |scenario: &Scenario| Kernel::resolve(&scenario.kernel).expect("a release");
            let [before, after] = scenarios.each_ref().map(kernel);
            for (subject, on) in before.coverage.settings() {
                // Groups are the workload's.
                let alike = after.coverage.get(subject) == Some(on) || subject == "memory_cgroups";
                assert!(alike, "{}: {subject}", pair[1]);
            }
            assert_eq!(before.sysctl, after.sysctl, "{}", pair[1]);
            let rows = HISTORY.iter().filter(|change| change.version == pair[1]);
            let said: Vec<&str> = rows.flat_map(altered_by).collect();
            let (old, new) = (before.mechanisms.settings(), after.mechanisms.settings());
            let differ = old.iter().zip(&new).filter(|(old, new)| old != new);
            for ((name, _), _) in differ {
                assert!(said.contains(name), "{}: {name}", pair[1]);
            }
        }
    }

    #[test]
    fn what_is_asked_for_is_not_taken_back() {
        let version = |text| Version::known(text).expect("a version");
        let mut scenarios = [scenario(&version("v5.8")), scenario(&version("v6.1"))];
        let setting = format!("{PREFIX}compaction");
        scenarios[1]
            .kernel
            .sysctl
            .insert(setting.clone(), "on".into());
        align(&mut scenarios);
        assert_eq!(scenarios[1].kernel.sysctl[&setting], "on");
        let mut alike = [scenario(&version("v6.1")), scenario(&version("v6.5"))];
        let before = alike.clone();
        align(&mut alike);
        assert_eq!(alike, before);
    }

    #[test]
    fn repeats_follow_from_the_workload() {
        let small = scenario(&versions()[0]);
        assert_eq!(repeats(std::slice::from_ref(&small)), REPEATS_MAX);
        let many = vec![small; 1000];
        assert_eq!(repeats(&many), REPEATS_MIN);
        assert_eq!(repeats(&[]), REPEATS_MIN);
    }
}

//! Memory cgroups of a load: one with a limit, and groups in it, of which some are protected.
//!
//! They are drawn from a stream of their own, so that what else a load is does not depend on them.

use crate::random::Stream;

/// Where the tasks of a load are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    /// In the group with the limit.
    Box,
    /// Each in a group of its own inside that, the deeper the more groups are between.
    Own {
        /// Groups between.
        between: u64,
    },
}

/// Which part of the limit a protected group asks for, percent.
const PROTECTED_PERCENT: [u64; 2] = [10, 110];

/// Draws where the tasks of a load in a group are. Every other one is in that itself.
pub(super) fn draw(stream: &mut Stream) -> Inside {
    match stream.below(2) {
        0 => Inside::Box,
        _ => Inside::Own {
            between: stream.below(3),
        },
    }
}

/// The group of a task.
pub(super) fn of_task(inside: Inside, task: &str) -> String {
    match inside {
        Inside::Box => "box".into(),
        Inside::Own { .. } => format!("of-{task}"),
    }
}

/// The sections of the groups of some tasks; all have `limit_mb` together.
pub(super) fn sections(
    inside: Inside,
    limit_mb: u64,
    tasks: &[&str],
    stream: &mut Stream,
) -> String {
    let mut text = format!("\n[cgroup.box]\nmax = \"{limit_mb}M\"\n");
    let Inside::Own { between } = inside else {
        return text;
    };
    let mut above = "box".to_owned();
    for depth in 0..between {
        let name = format!("level-{depth}");
        text += &format!(
            "\n[cgroup.{name}]\nparent = \"{above}\"\n{}",
            protection(limit_mb, stream)
        );
        above = name;
    }
    for task in tasks {
        let name = of_task(inside, task);
        text += &format!(
            "\n[cgroup.{name}]\nparent = \"{above}\"\n{}",
            protection(limit_mb, stream)
        );
    }
    text
}

/// What a group asks for; every other one asks for nothing. A group whose `memory.min` is all of the limit would end the
/// run, so that is a quarter at most.
fn protection(limit_mb: u64, stream: &mut Stream) -> String {
    let [least, most] = PROTECTED_PERCENT;
    let percent = stream.between(least, most);
    match stream.below(4) {
        0 => format!("low = \"{}M\"\n", limit_mb * percent / 100),
        1 => format!("min = \"{}M\"\n", limit_mb * percent / 440),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::random_load::RandomLoad;
    use crate::{BuiltIn, Overrides, Source, parse};

    /// Loads with groups parse, reach every depth that may be drawn, and ask for both kinds of protection.
    #[test]
    fn groups_of_loads_lie_in_each_other_and_are_protected() {
        let loads = (0..40).flat_map(|seed| (0..6).map(move |at| RandomLoad::new(seed, at, false)));
        let (mut depths, mut low, mut min) = ([0; 5], 0, 0);
        for load in loads.filter(|load| load.text.contains("[cgroup.box]")) {
            let source = Source {
                name: load.name.clone(),
                text: load.text.clone(),
            };
            let scenarios = match parse(&source, &BuiltIn, &Overrides::default()) {
                Ok(scenarios) => scenarios,
                Err(error) => panic!("{}{}", error.render_plain(), load.text),
            };
            let groups = &scenarios[0].workload.cgroups;
            for task in &scenarios[0].workload.tasks {
                // A task that holds blocks of pages is in none.
                let Some(group) = task.cgroup.map(|group| &groups[group]) else {
                    continue;
                };
                depths[group.path.split('/').count()] += 1;
            }
            low += groups.iter().filter(|group| group.low.is_some()).count();
            min += groups.iter().filter(|group| group.min.is_some()).count();
            assert!(groups[0].max.is_some() && groups[1..].iter().all(|group| group.max.is_none()));
        }
        assert!(depths[1..].iter().all(|&tasks| tasks > 0), "{depths:?}");
        assert!(low > 5 && min > 5, "{low} and {min}");
    }
}

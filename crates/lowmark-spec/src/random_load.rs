//! Workloads that nobody chose: their text follows from a seed.
//!
//! 1. A load belongs to a class, which is what its memory is; six loads in a row have six classes.
//! 2. The machine is a guest of 256 MB, in one node or in two. Every task gets a share of what the load takes, which
//!    is less than is free there or up to half as much again, or more than the limit of the load's group. In every other load with
//!    a group each task has one of its own inside that, which may be protected ([`groups`]).
//! 3. Tasks take their memory, meet at a barrier, and then use it: all of it again, a hot part of it, or places drawn
//!    from a distribution. How often is bounded by what one access takes in a guest that is translated
//!    ([`tasks`]).
//! 4. One load in eight also asks for huge pages, which it holds for a while.
//! 5. A setting of the kernel is drawn that matters to the class. With `effects` the load runs with two values of it.
//!
//! The text is what is parsed and run, so that a load that was kept is run again as any other file.

mod groups;
mod knobs;
mod tasks;

use crate::random::Stream;
use std::fmt::Write;
use tasks::{Draft, Share};

/// What the memory of a load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Private memory of its tasks.
    Private,
    /// Shared memory (shmem).
    Shared,
    /// A file that is mapped.
    Mapped,
    /// A file that is read by read(2).
    Read,
    /// Files that are written.
    Write,
    /// Two tasks of different ones of these.
    Mixed,
}

/// A load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomLoad {
    /// Name of the workload: `random-SEED-NUMBER`.
    pub name: String,
    /// What its memory is.
    pub class: Class,
    /// The workload, in the language.
    pub text: String,
}

impl Class {
    /// All of them, in the order in which loads have them.
    pub const ALL: [Class; 6] = [
        Class::Private,
        Class::Read,
        Class::Shared,
        Class::Write,
        Class::Mapped,
        Class::Mixed,
    ];

    /// The classes of a single task.
    const SIMPLE: [Class; 5] = [
        Class::Private,
        Class::Shared,
        Class::Mapped,
        Class::Read,
        Class::Write,
    ];

    /// The word for it: `private`, `shared`, `mapped`, `read`, `write`, `mixed`.
    pub fn name(self) -> &'static str {
        match self {
            Class::Private => "private",
            Class::Shared => "shared",
            Class::Mapped => "mapped",
            Class::Read => "read",
            Class::Write => "write",
            Class::Mixed => "mixed",
        }
    }

    /// Whether its pages go to swap.
    fn is_anonymous(self) -> bool {
        matches!(self, Class::Private | Class::Shared)
    }
}

/// What the head of a load's text begins the line with that names its class.
const CLASS_LINE: &str = "# Class: ";

/// The class that the head of a workload's text names, as [`RandomLoad::text`] does; none if it names none.
pub fn class_of(text: &str) -> Option<Class> {
    let line = text
        .lines()
        .take_while(|line| line.starts_with('#'))
        .find_map(|line| line.strip_prefix(CLASS_LINE))?;
    Class::ALL
        .into_iter()
        .find(|class| class.name() == line.trim_end_matches('.'))
}

/// Least and most memory that a load takes, MB: a guest has some 200 free.
const TOTAL_MB: [u64; 2] = [140, 300];
/// The same in a group, by the group's limit: percent.
const OVER_LIMIT_PERCENT: [u64; 2] = [90, 160];
/// Limits of groups, MB.
const LIMIT_MB: [u64; 2] = [40, 110];
/// Seeds that are drawn for the loads themselves are below this, so that they are short to type.
const SEEDS: u64 = 1_000_000;

impl RandomLoad {
    /// The load with this number, from 0, of the loads of a seed. With `effects` it has a parameter: the
    /// setting that was drawn for it, with two values.
    ///
    /// The same arguments give the same text, and the seed of a load is not that of its neighbours.
    pub fn new(seed: u64, number: u64, effects: bool) -> RandomLoad {
        let mut stream = Stream::new(seed, "random load", number);
        let first = Stream::new(seed, "random load: first class", 0).below(Class::ALL.len() as u64);
        let class = Class::ALL[((first + number % 6) % 6) as usize];
        let name = format!("random-{seed}-{number}");
        let two_nodes = stream.below(4) == 0;
        let group = (stream.below(4) == 0).then(|| stream.between(LIMIT_MB[0], LIMIT_MB[1]));
        let total_mb = match group {
            None => stream.between(TOTAL_MB[0], TOTAL_MB[1]),
            Some(limit) => {
                limit * stream.between(OVER_LIMIT_PERCENT[0], OVER_LIMIT_PERCENT[1]) / 100
            }
        };
        let mut of_groups = Stream::new(seed, "random load: groups", number);
        let inside = group.map(|_| groups::draw(&mut of_groups));
        let mut draft = Draft::default();
        let classes = parts(class, &mut stream);
        let share = Share {
            mb: total_mb / classes.len() as u64,
            two_nodes,
            group: inside,
        };
        for class in &classes {
            draft.task(*class, share, &mut stream);
        }
        draft.blocks(&mut Stream::new(seed, "random load: blocks", number));
        let knob = knobs::draw(&classes, &mut stream);
        let run_seed = stream.below(SEEDS);

        let mut text = String::new();
        let mut line = |of: std::fmt::Arguments<'_>| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{of}");
        };
        let flag = if effects { " --knobs" } else { "" };
        line(format_args!(
            "# Load {number} of `lowmark twin --random N --seed {seed}{flag}`."
        ));
        line(format_args!("{CLASS_LINE}{}.", class.name()));
        line(format_args!("# Run it again: lowmark twin {name}.toml\n"));
        line(format_args!("lowmark = 1\n"));
        line(format_args!("[workload]\nname = \"{name}\""));
        line(format_args!("title = \"{}\"", draft.title(group)));
        line(format_args!("seed = {run_seed}\n"));
        if effects {
            let [usual, other] = knob.values;
            line(format_args!("[for]\n{} = [{usual}, {other}]\n", knob.name));
        }
        line(format_args!("[machine]\nuse = \"guest-256m\""));
        if two_nodes {
            line(format_args!("nodes = [\"128M\", \"128M\"]"));
        }
        line(format_args!("\n[kernel]\nuse = [\"v6.1\", \"v6.18\"]"));
        if effects {
            line(format_args!(
                "sysctl = {{ {} = \"${}\" }}",
                knob.name, knob.name
            ))
        } else {
            line(format_args!(
                "sysctl = {{ {} = {} }}",
                knob.name, knob.values[knob.chosen]
            ))
        }
        if let (Some(limit), Some(inside)) = (group, inside) {
            text += &groups::sections(inside, limit, draft.tasks(), &mut of_groups);
        }
        text.push_str(&draft.sections());
        RandomLoad { name, class, text }
    }
}

/// The classes of a load's tasks.
fn parts(class: Class, stream: &mut Stream) -> Vec<Class> {
    if class != Class::Mixed {
        return vec![class];
    }
    let count = Class::SIMPLE.len() as u64;
    let first = stream.below(count);
    // Any of the others.
    let second = (first + 1 + stream.below(count - 1)) % count;
    [first, second].map(|at| Class::SIMPLE[at as usize]).into()
}

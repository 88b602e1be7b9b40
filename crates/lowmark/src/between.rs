//! What lies between two ends that are compared: their changes, and the run that has some of them.
//!
//! 1. An end is a kernel, settings of its own (`--from-set`) and maybe a machine: as the command line names it, or as a
//!    column of a published evaluation does ([`crate::columns`]).
//! 2. Kernels of the model differ in rows of the history, variants and settings ([`Difference`]). An image in a guest cannot
//!    be taken apart: it is one change, and its settings are others.
//! 3. What is not the kernel's, the machine and what is set of it or of the workload, comes after that: a change for each.
//! 4. A run with some of these changes is parsed anew from the workload's file, since what is set there decides about others.

mod images;

use crate::cli::{Ask, Backend};
use crate::library::Found;
use crate::plan::{self, Real, Run};
use crate::{comparing, sweeping};
use images::Images;
use lowmark_model::check;
use lowmark_model::kernel::{Alteration, Difference, Kernel};
use lowmark_real::guest::{GuestOptions, KernelImage};
use lowmark_report::bisect::Change;
use lowmark_spec::{Overrides, Scenario};
use miette::{IntoDiagnostic, miette};
use std::rc::Rc;

/// One of two things that are compared.
#[derive(Debug, Clone)]
pub(crate) struct End {
    /// What it is called.
    pub(crate) name: String,
    /// Its kernel, as `--kernel` takes it.
    pub(crate) kernel: String,
    /// Its machine, in place of the workload's.
    pub(crate) machine: Option<String>,
    /// What is set for it alone.
    pub(crate) set: Vec<(String, String)>,
}

/// A workload on two ends.
pub(crate) struct Pair {
    /// The workload.
    pub(crate) found: Found,
    /// The ends.
    pub(crate) ends: [End; 2],
}

/// Something besides the kernel in which two ends differ.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Beside {
    /// The machine as a whole, by name.
    Machine([String; 2]),
    /// What is set; none where it is as the workload says.
    Set(String, [Option<String>; 2]),
}

/// In what two kernels differ, and what each of them and of those between is.
enum Kernels {
    /// On the model.
    Model(Box<Difference>),
    /// In guests.
    Guests(Box<Images>),
}

/// What is run with some of the changes.
pub(crate) struct Point {
    /// The scenario, which is repeated.
    pub(crate) scenario: Scenario,
    /// The guest that runs it; none for the model.
    pub(crate) guest: Option<GuestOptions>,
    /// What the model makes of its kernel, which may be what it makes of another one; none in guests.
    pub(crate) kernel: Option<Kernel>,
    /// Which of the changes besides the kernel it has.
    pub(crate) beside: Vec<bool>,
}

/// What lies between the two ends for one combination of the workload's parameters.
pub(crate) struct Between {
    pair: Rc<Pair>,
    ask: Rc<Ask>,
    /// What is set for both ends.
    set: Vec<(String, String)>,
    /// Number of the combination of parameters among those of the file.
    at: usize,
    /// The ends, with what they have in common.
    ends: Box<[Scenario; 2]>,
    kernels: Kernels,
    beside: Vec<Beside>,
}

/// What lies between two ends, for each combination of the workload's parameters.
pub(crate) fn all(pair: Pair, ask: &Ask) -> miette::Result<Vec<Between>> {
    let images = match ask.on {
        Backend::Guest => Some(images::find(&pair.ends, ask)?),
        Backend::Model | Backend::Host => None,
    };
    let (pair, ask) = (Rc::new(pair), Rc::new(ask.clone()));
    let mut all = Vec::new();
    for set in sweeping::settings(&ask.set)? {
        let parsed = |at: usize| {
            let kernel = match &images {
                Some(images) => images::written(&pair.ends[at].kernel, &images[at]),
                None => pair.ends[at].kernel.clone(),
            };
            parse(&pair, &ask, at, &kernel, [&set, &pair.ends[at].set])
        };
        let [from, to] = [parsed(0)?, parsed(1)?];
        if from.len() != to.len() {
            return Err(miette!(
                help = "give such a parameter a value on both sides, or none",
                "{} has {} combinations of parameters, {} has {}",
                pair.ends[0].name,
                from.len(),
                pair.ends[1].name,
                to.len()
            ));
        }
        for (at, (from, to)) in from.into_iter().zip(to).enumerate() {
            let ends = [from, to];
            let pair = Rc::clone(&pair);
            let between = Between::new(pair, Rc::clone(&ask), set.clone(), at, ends, &images)?;
            all.push(between);
        }
    }
    Ok(all)
}

/// The scenarios of one end, one for each combination of parameters.
fn parse(
    pair: &Pair,
    ask: &Ask,
    machine_of: usize,
    kernel: &str,
    [common, own]: [&[(String, String)]; 2],
) -> miette::Result<Vec<Scenario>> {
    let machine = ask.machine.clone();
    let machines = match machine {
        Some(_) => &crate::library::CommandLine,
        None => pair.found.machines.as_ref(),
    };
    let overrides = Overrides {
        machine: machine.or_else(|| pair.ends[machine_of].machine.clone()),
        kernels: vec![kernel.to_owned()],
        set: common.iter().chain(own).cloned().collect(),
        seed: ask.seed,
    };
    plan::parsed(&pair.found.source, machines, &overrides, ask.on)
}

impl Between {
    fn new(
        pair: Rc<Pair>,
        ask: Rc<Ask>,
        set: Vec<(String, String)>,
        at: usize,
        mut ends: [Scenario; 2],
        images: &Option<[KernelImage; 2]>,
    ) -> miette::Result<Between> {
        let kernels = match images {
            None => {
                comparing::align(&mut ends);
                for end in &ends {
                    let refused = |refusal| plan::refused(&refusal, &pair.found.source);
                    check(end).map_err(refused)?;
                }
                let [from, to] = ends.each_ref().map(|end| &end.kernel);
                Kernels::Model(Box::new(Difference::between(from, to).into_diagnostic()?))
            }
            Some(images) => {
                for end in &ends {
                    lowmark_real::guest::check(end).map_err(crate::error::Guest)?;
                }
                Kernels::Guests(Box::new(Images::new(&pair.ends, &ask, &mut ends, images)))
            }
        };
        let mut between = Between {
            pair,
            ask,
            set,
            at,
            ends: Box::new(ends),
            kernels,
            beside: Vec::new(),
        };
        between.beside = between.all_beside();
        Ok(between)
    }

    /// What differs besides the kernel: the machine, and what is set of it or of the workload.
    fn all_beside(&self) -> Vec<Beside> {
        let machines = self.ends.each_ref().map(|end| end.machine.name.clone());
        let mut beside = Vec::new();
        if machines[0] != machines[1] {
            beside.push(Beside::Machine(machines));
        }
        let own = self.pair.ends.each_ref().map(|end| &end.set);
        let mut names: Vec<&String> = own
            .iter()
            .flat_map(|set| set.iter().map(|it| &it.0))
            .collect();
        names.sort();
        names.dedup();
        for name in names {
            let value = |set: &Vec<(String, String)>| {
                let found = set.iter().find(|(known, _)| known == name);
                found.map(|(_, value)| value.clone())
            };
            let values = own.map(value);
            let change = Beside::Set(name.clone(), values.clone());
            if values[0] != values[1] && !self.is_of_the_kernel(&change) {
                beside.push(change);
            }
        }
        beside
    }

    /// Whether what is set is a setting of the kernel, which is among the changes already.
    fn is_of_the_kernel(&self, change: &Beside) -> bool {
        let scenario = |with: bool| self.parsed(std::slice::from_ref(change), &[with]);
        let [Ok(without), Ok(with)] = [scenario(false), scenario(true)] else {
            return false;
        };
        without.kernel.sysctl != with.kernel.sysctl
    }

    /// The workload with those of some changes besides the kernel that are marked.
    fn parsed(&self, changes: &[Beside], with: &[bool]) -> Result<Scenario, String> {
        let mut machine_of = 0;
        let mut own = self.pair.ends[0].set.clone();
        for (change, _) in changes.iter().zip(with).filter(|(_, with)| **with) {
            match change {
                Beside::Machine(_) => machine_of = 1,
                Beside::Set(name, [_, after]) => {
                    own.retain(|(known, _)| known != name);
                    own.extend(after.iter().map(|after| (name.clone(), after.clone())));
                }
            }
        }
        let kernel = &self.ends[0].kernel.version;
        let scenarios = parse(&self.pair, &self.ask, machine_of, kernel, [&self.set, &own]);
        let scenarios = scenarios.map_err(|error| error.to_string())?;
        let found = scenarios.into_iter().nth(self.at);
        found.ok_or_else(|| "the workload has no such combination of parameters".to_owned())
    }

    /// Both ends.
    pub(crate) fn ends(&self) -> &[Scenario; 2] {
        &self.ends
    }

    /// Workload, parameters and machine, as far as both ends have them.
    pub(crate) fn title(&self) -> String {
        let [from, to] = self.ends.as_ref();
        let mut common = from.clone();
        common.params.retain(|param| to.params.contains(param));
        if from.machine.name != to.machine.name {
            common.machine.name = format!("{} and {}", from.machine.name, to.machine.name);
        }
        plan::title_without_kernel(&common)
    }

    /// What the ends differ in.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let mut changes = match &self.kernels {
            Kernels::Model(difference) => difference.alterations().iter().map(change).collect(),
            Kernels::Guests(images) => images.changes(),
        };
        changes.extend(self.beside.iter().map(Beside::change));
        changes
    }

    /// Changes that do nothing in the model of either kernel.
    pub(crate) fn left_out(&self) -> Vec<&'static str> {
        match &self.kernels {
            Kernels::Model(difference) => {
                let left_out = difference.left_out().iter();
                left_out.map(|change| change.name).collect()
            }
            Kernels::Guests(_) => Vec::new(),
        }
    }

    /// What is run with the changes for which `with` has true, or why nothing is.
    pub(crate) fn point(&self, with: &[bool]) -> Result<Point, String> {
        let (of_kernel, beside) = with.split_at(with.len() - self.beside.len());
        let [from, to] = self.ends.as_ref();
        let mut scenario = match (beside.contains(&true), beside.contains(&false)) {
            (false, _) => from.clone(),
            (true, false) => to.clone(),
            (true, true) => self.parsed(&self.beside, beside)?,
        };
        let (guest, kernel) = match &self.kernels {
            Kernels::Model(difference) => {
                let spec = difference.spec(of_kernel);
                scenario.kernel = spec.map_err(|refused| refused.to_string())?;
                check(&scenario).map_err(|refused| refused.to_string())?;
                let kernel = Kernel::resolve(&scenario.kernel);
                (None, Some(kernel.map_err(|refused| refused.to_string())?))
            }
            Kernels::Guests(images) => {
                let (spec, guest) = images.kernel(of_kernel);
                scenario.kernel = spec;
                lowmark_real::guest::check(&scenario).map_err(|refused| refused.to_string())?;
                (Some(guest), None)
            }
        };
        Ok(Point {
            scenario,
            guest,
            kernel,
            beside: beside.to_vec(),
        })
    }
}

impl Point {
    /// Whether another point's runs are the same.
    pub(crate) fn is_like(&self, other: &Point) -> bool {
        match (&self.kernel, &other.kernel) {
            (Some(own), Some(other_kernel)) => {
                self.beside == other.beside && own.works_like(other_kernel)
            }
            _ => false,
        }
    }

    /// Its runs.
    pub(crate) fn runs(&self, repeats: u64) -> miette::Result<Vec<Run>> {
        let real = self.guest.clone().map(|guest| Real::Guest(Box::new(guest)));
        plan::repeated(&self.scenario, real.as_ref(), repeats)
    }
}

fn change(alteration: &Alteration) -> Change {
    Change {
        name: alteration.name(),
        version: alteration.row().map(|row| row.version.to_string()),
        commit: alteration.row().map(|row| row.commit.to_owned()),
        summary: alteration.summary(),
    }
}

impl Beside {
    fn change(&self) -> Change {
        let [name, summary] = match self {
            Beside::Machine([from, to]) => [
                format!("machine={to}"),
                format!("the machine, from {from} to {to}"),
            ],
            Beside::Set(name, [before, after]) => {
                let value = |value: &Option<String>| {
                    value.clone().unwrap_or_else(|| "the workload's".to_owned())
                };
                let called = match after {
                    Some(after) => format!("{name}={after}"),
                    None => format!("-{name}={}", value(before)),
                };
                [
                    called,
                    format!("from {} to {}", value(before), value(after)),
                ]
            }
        };
        Change {
            name,
            version: None,
            commit: None,
            summary,
        }
    }
}

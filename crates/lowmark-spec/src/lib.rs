//! What is asked for: workload, machine, kernel.
//!
//! A specification is a TOML file. [`parse`] turns its text into [`Scenario`]s: one for every
//! combination of its `for` parameters, with every expression evaluated, every name resolved and every
//! value in range. A backend needs nothing else.

pub mod kernel;
pub mod machine;
pub mod pace;
mod parse;
pub mod random;
pub mod random_load;
mod touches;
pub mod visit;
pub mod workload;

pub use kernel::{KernelJudge, KernelPart, KernelSpec, Objection, Toggle};
pub use machine::Machine;
pub use parse::{
    BuiltIn, Detail, Directory, LANGUAGE_VERSION, Library, Overrides, SOURCE_BYTES_MAX, STATEMENTS,
    Source, SpecError, is_path, parse, parse_for, parse_machine, sweep_kernel, sweep_setting,
    write_machine,
};
pub use workload::Workload;

/// One run to be done: the unit that backends take.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Scenario {
    /// Values of the `for` parameters, in the order of the file.
    pub params: Vec<(String, String)>,
    /// The machine to run on.
    pub machine: Machine,
    /// The kernel to run.
    pub kernel: KernelSpec,
    /// What to do on it.
    pub workload: Workload,
    /// Seed of all random choices; 0 unless one is given.
    pub seed: u64,
    /// Where periodic work of the kernel stands when the workload begins, which on a real machine is chance: midway
    /// between two rounds with 0, and elsewhere with other numbers, of which few in a row are spread evenly.
    pub phase: u64,
    /// Which boot of the machine it is. 0 is the machine as it is described; of others each has a few pages more or less
    /// in use, at other places, heads of disks elsewhere, devices that take a little more or less time for each command,
    /// and tasks that start in another order: what nobody can hold fixed on a real machine.
    #[serde(default)]
    pub boot: u64,
}

//! From text to [`Scenario`]s.
//!
//! 1. [`source`] keeps the texts, [`tree`] parses TOML and keeps every place.
//! 2. [`document`] takes the file apart, [`scenario`] goes through all combinations of its `for`
//!    parameters.
//! 3. For each: the [`machine`], the `let` values ([`scope`], [`expr`], [`values`]), the [`objects`] and the
//!    [`task`]s with their [`statement`]s; [`check`] looks at all of them together.
//! 4. The tables of a [`machine`] are declared as lists of [`fields`], from which [`mod@write`] makes a machine file again.
//! 5. [`sweep`] takes ranges and lists of the command line apart, before any of this.
//! 6. Everything wrong becomes a [`SpecError`] ([`error`]); [`budget`] bounds what a file can ask for.

mod budget;
mod cgroups;
mod check;
mod cited;
mod costs;
mod device;
mod document;
mod error;
mod exact;
mod expr;
mod fields;
mod fitted;
mod forms;
mod kernel;
mod library;
mod machine;
mod objects;
mod overrides;
mod scenario;
mod scope;
mod server;
mod source;
mod statement;
mod suggest;
mod swap;
mod sweep;
mod sysctl;
mod task;
mod tree;
mod values;
mod write;
mod zones;

use crate::{KernelJudge, Machine, Scenario};

pub use error::{Detail, SpecError};
pub use library::{BuiltIn, Directory, Library, is_path};
pub use overrides::Overrides;
pub use source::{SOURCE_BYTES_MAX, Source};
pub use statement::STATEMENTS;
pub use sweep::{sweep_kernel, sweep_setting};
pub use write::write_machine;

use error::{Problem, Problems, Result};
use scope::Scope;
use source::{Sources, Span};
use tree::{Entry, Node, Value};

/// Version of the language.
pub const LANGUAGE_VERSION: u64 = 1;

/// Parses a workload: one scenario for every combination of its `for` parameters, the last parameter
/// varying fastest, and for every kernel within each.
///
/// # Errors
///
/// [`SpecError`] says everything that is wrong with the file or the overrides.
pub fn parse(
    source: &Source,
    library: &dyn Library,
    overrides: &Overrides,
) -> std::result::Result<Vec<Scenario>, SpecError> {
    parse_for(source, library, overrides, |_| Vec::new())
}

/// The same for a backend: what it has against a kernel is told with its place, as everything else that is wrong.
///
/// # Errors
///
/// [`SpecError`] says everything that is wrong with the file or the overrides, or that the backend does not have.
pub fn parse_for(
    source: &Source,
    library: &dyn Library,
    overrides: &Overrides,
    judge: KernelJudge,
) -> std::result::Result<Vec<Scenario>, SpecError> {
    finish(|sources, problems| {
        scenario::parse(source, library, overrides, judge, sources, problems)
    })
}

/// Parses a machine file.
///
/// # Errors
///
/// [`SpecError`] says everything that is wrong with the file.
pub fn parse_machine(source: &Source) -> std::result::Result<Machine, SpecError> {
    finish(|sources, _| machine_file(source, sources))
}

/// Runs a reader and turns what it complains about into the public error.
fn finish<T>(
    read: impl FnOnce(&mut Sources, &mut Problems) -> Result<T>,
) -> std::result::Result<T, SpecError> {
    let (mut sources, mut problems) = (Sources::default(), Problems::default());
    let result = read(&mut sources, &mut problems);
    match problems.keep(result) {
        Some(value) if problems.is_empty() => Ok(value),
        _ => Err(problems.into_error(&sources)),
    }
}

/// Reads a machine file. The machine's name is that of the file.
fn machine_file(source: &Source, sources: &mut Sources) -> Result<Machine> {
    let root = sources.load(source)?;
    check_version(&root)?;
    let machine = entry(&root, "machine").ok_or_else(|| {
        Problem::new(
            root.span,
            "a machine file needs a section [machine]",
            "add [machine] with ram and cpus",
        )
    })?;
    let file = source.name.rsplit(['/', '\\']).next().unwrap_or("");
    let name = file.strip_suffix(".toml").unwrap_or(file);
    let description = machine::Description {
        machine,
        parts: &root,
        file: true,
    };
    machine::read(description, None, name, &Scope::default())
}

/// The entry of a key of the root table.
fn entry<'t>(root: &'t Node, key: &str) -> Option<&'t Entry> {
    root.entries("sections")
        .unwrap_or(&[])
        .iter()
        .find(|entry| entry.key == key)
}

/// Checks the first line, `lowmark = 1`.
fn check_version(root: &Node) -> Result<()> {
    const HELP: &str = "begin the file with lowmark = 1, the version of the language";
    let Some(node) = root.get("lowmark") else {
        return Err(Problem::new(
            root.span,
            "the file needs `lowmark`, the version of its language",
            HELP,
        ));
    };
    let number = match node.value {
        Value::Number(_) => Scope::default().count(node).ok(),
        _ => None,
    };
    match number {
        Some(LANGUAGE_VERSION) => Ok(()),
        Some(version) => Err(Problem::new(
            node.span,
            format!("found language version {version}, expected {LANGUAGE_VERSION}"),
            "this lowmark reads version 1; a newer lowmark may read this file",
        )),
        None => Err(Problem::new(
            node.span,
            format!(
                "expected the version {LANGUAGE_VERSION}, found {}",
                node.describe()
            ),
            HELP,
        )),
    }
}

impl crate::KernelSpec {
    /// Parses `VERSION[-CHANGE][+MECHANISM=VARIANT | +CHANGE]…[,SYSCTL=VALUE | ,-CHANGE]…`, for example
    /// `v3.6+swapin_readahead=hugh-new,page_cluster=4` or `6.18-eevdf`.
    ///
    /// # Errors
    ///
    /// [`SpecError`] if the text does not have this form. Whether the version and the mechanisms exist
    /// is the backend's to say.
    pub fn parse(text: &str) -> std::result::Result<crate::KernelSpec, SpecError> {
        finish(|sources, _| {
            let span: Span = sources.add("--kernel", "kernel.use", text);
            let read = kernel::read(&Node::text(span, text), text, &Scope::default());
            read.map(|(spec, _)| spec)
        })
    }
}

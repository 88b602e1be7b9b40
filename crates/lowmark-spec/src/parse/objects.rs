//! What statements and tasks refer to: files, sets of files, barriers, memory cgroups, series, phases.

use std::collections::BTreeMap;

use crate::machine::Machine;
use crate::workload::{
    Cgroup, File, FileKind, FileSet, PoolId, Series, SizeDist, TaskId, TimeUnit,
};

use super::budget::Budget;
use super::cgroups;
use super::error::{Problem, Problems, Result};
use super::fields::Fields;
use super::scope::{Scope, identifier};
use super::source::Span;
use super::suggest;
use super::tree::{Entry, Node, Value, shorten};

const FILE_KINDS: [(&str, FileKind); 3] = [
    ("sparse", FileKind::Sparse),
    ("zero", FileKind::Zero),
    ("random", FileKind::Random),
];

const TIME_UNITS: [(&str, TimeUnit); 5] = [
    ("ns", TimeUnit::Nanoseconds),
    ("us", TimeUnit::Microseconds),
    ("ms", TimeUnit::Milliseconds),
    ("cs", TimeUnit::Centiseconds),
    ("s", TimeUnit::Seconds),
];

/// What a name of a file stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileName {
    /// An entry of [`Objects::files`].
    File(usize),
    /// An entry of [`Objects::filesets`].
    Set(usize),
    /// Something that was defined, but not understood.
    Broken,
}

/// A barrier before its parties are counted.
#[derive(Debug, Clone)]
pub(crate) struct BarrierDef {
    pub(crate) name: String,
    pub(crate) span: Span,
    /// Parties as written.
    pub(crate) parties: Option<u64>,
}

/// Everything that is defined outside of tasks, by name and by index.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub(crate) files: Vec<File>,
    pub(crate) filesets: Vec<FileSet>,
    file_names: BTreeMap<String, FileName>,
    pub(crate) barriers: Vec<BarrierDef>,
    pub(crate) cgroups: Vec<Cgroup>,
    pub(crate) series: Vec<Series>,
    series_names: BTreeMap<String, usize>,
    /// Where each series got its unit, or was first met; and whether it got one.
    series_spans: Vec<(Span, bool)>,
    pub(crate) phases: Vec<String>,
    phase_names: BTreeMap<String, usize>,
    /// Names of the pools of each task.
    pools: BTreeMap<TaskId, Vec<String>>,
}

/// Reads the sections `[file.*]`, `[fileset.*]`, `[barrier.*]`, `[cgroup.*]` and `[series.*]`.
pub(crate) fn read(
    root: &Node,
    machine: &Machine,
    scope: &Scope<'_>,
    budget: &mut Budget,
    problems: &mut Problems,
) -> Objects {
    let mut objects = Objects::default();
    let mut reader = Reader {
        objects: &mut objects,
        machine,
        scope,
        budget,
    };
    let mut defs = Vec::new();
    for section in ["file", "fileset", "barrier", "cgroup", "series"] {
        let Some(node) = root.get(section) else {
            continue;
        };
        let what = format!("one table for each {section}");
        for Entry {
            key,
            key_span,
            node,
        } in problems.keep(node.entries(&what)).unwrap_or(&[])
        {
            let named = identifier(key, *key_span, &format!("a {section}"));
            let result = named.and_then(|()| match section {
                "file" => reader.file(key, *key_span, node),
                "fileset" => reader.fileset(key, *key_span, node),
                "barrier" => reader.barrier(key, *key_span, node),
                "cgroup" => {
                    cgroups::read(&mut defs, key, *key_span, node, reader.scope, reader.budget)
                }
                _ => reader.series(key, *key_span, node),
            });
            if let Err(problem) = result {
                problems.push(problem);
                reader
                    .objects
                    .file_names
                    .entry(key.clone())
                    .or_insert(FileName::Broken);
            }
        }
    }
    objects.cgroups = cgroups::arrange(&defs, problems);
    objects
}

struct Reader<'r, 's> {
    objects: &'r mut Objects,
    machine: &'r Machine,
    scope: &'r Scope<'s>,
    budget: &'r mut Budget,
}

impl Reader<'_, '_> {
    fn define(&mut self, name: String, span: Span, meaning: FileName) -> Result<()> {
        if self.objects.file_names.contains_key(&name) {
            return Err(Problem::new(
                span,
                format!("found a second file or fileset named `{name}`"),
                "files and filesets share their names; rename one",
            ));
        }
        self.objects.file_names.insert(name, meaning);
        Ok(())
    }

    /// The file system a file is on: the one named, or the machine's first.
    fn filesystem(&self, fields: &Fields<'_, '_>) -> Result<String> {
        let known = || self.machine.filesystems.iter().map(|fs| fs.name.as_str());
        let Some(node) = fields.node("fs") else {
            return known().next().map(str::to_owned).ok_or_else(|| {
                Problem::new(
                    fields.span(),
                    format!(
                        "expected a machine with a file system, found none on `{}`",
                        self.machine.name
                    ),
                    "add [machine.filesystem.data] with kind and device",
                )
            });
        };
        let name = fields.scope.text(node)?;
        if known().any(|fs| fs == name) {
            return Ok(name);
        }
        let message = format!(
            "unknown file system `{}` on `{}`",
            shorten(&name),
            self.machine.name
        );
        Err(Problem::new(
            node.span,
            message,
            suggest::help(&name, known()),
        ))
    }

    fn file(&mut self, name: &str, span: Span, node: &Node) -> Result<()> {
        const KEYS: [&str; 7] = ["kind", "size", "fs", "path", "unlinked", "exists", "copies"];
        const COPIES_MAX: u32 = 100_000;
        let owner = format!("the file `{name}`");
        let fields = Fields::open(node, span, &owner, &KEYS, self.scope)?;
        let exists = fields.or("exists", Scope::flag, true)?;
        let file = File {
            path: fields
                .maybe("path", path)?
                .unwrap_or_else(|| name.to_owned()),
            fs: self.filesystem(&fields)?,
            kind: fields.or(
                "kind",
                |scope, node| scope.choice(node, "a kind of file", &FILE_KINDS),
                FileKind::Zero,
            )?,
            size: match fields.maybe("size", Scope::size)? {
                Some(size) => size,
                None if exists => {
                    return Err(fields.missing("size", "size = \"1G\", or exists = false"));
                }
                None => 0,
            },
            exists,
            unlinked: fields.or("unlinked", Scope::flag, false)?,
        };
        let copies = |scope: &Scope<'_>, node: &Node| scope.some_up_to(node, COPIES_MAX);
        let Some(copies) = fields.maybe("copies", copies)? else {
            self.define(
                name.to_owned(),
                span,
                FileName::File(self.objects.files.len()),
            )?;
            self.budget.charge(span, file.path.len())?;
            self.objects.files.push(file);
            return Ok(());
        };
        for copy in 0..copies {
            self.budget.charge(span, file.path.len() + name.len())?;
            self.define(
                format!("{name}{copy}"),
                span,
                FileName::File(self.objects.files.len()),
            )?;
            self.objects.files.push(File {
                path: format!("{}{copy}", file.path),
                ..file.clone()
            });
        }
        Ok(())
    }

    fn fileset(&mut self, name: &str, span: Span, node: &Node) -> Result<()> {
        const KEYS: [&str; 6] = ["directories", "files", "size", "fs", "kind", "exists"];
        const FILES_MAX: u64 = 100_000_000;
        let owner = format!("the fileset `{name}`");
        let fields = Fields::open(node, span, &owner, &KEYS, self.scope)?;
        let set = FileSet {
            name: name.to_owned(),
            fs: self.filesystem(&fields)?,
            directories: fields.or("directories", Scope::some, 1)?,
            files: fields.need(
                "files",
                "files = 100, the number in each directory",
                Scope::some,
            )?,
            size: fields.need("size", "size = \"64K\"", size_dist)?,
            kind: fields.or(
                "kind",
                |scope, node| scope.choice(node, "a kind of file", &FILE_KINDS),
                FileKind::Zero,
            )?,
            exists: fields.or("exists", Scope::flag, true)?,
        };
        let total = set
            .directories
            .checked_mul(set.files)
            .filter(|&total| total <= FILES_MAX);
        if total.is_none() {
            return Err(Problem::new(
                span,
                format!(
                    "expected at most {FILES_MAX} files, found {} directories of {}",
                    set.directories, set.files
                ),
                "lower `directories` or `files`",
            ));
        }
        self.budget.charge(span, name.len())?;
        self.define(
            set.name.clone(),
            span,
            FileName::Set(self.objects.filesets.len()),
        )?;
        self.objects.filesets.push(set);
        Ok(())
    }

    fn barrier(&mut self, name: &str, span: Span, node: &Node) -> Result<()> {
        let owner = format!("the barrier `{name}`");
        let fields = Fields::open(node, span, &owner, &["parties"], self.scope)?;
        let parties = fields.maybe("parties", Scope::some)?;
        self.budget.charge(span, name.len())?;
        self.objects.barriers.push(BarrierDef {
            name: name.to_owned(),
            span,
            parties,
        });
        Ok(())
    }

    fn series(&mut self, name: &str, span: Span, node: &Node) -> Result<()> {
        let owner = format!("the series `{name}`");
        let fields = Fields::open(node, span, &owner, &["unit"], self.scope)?;
        let unit = fields.maybe("unit", time_unit)?;
        self.objects.series_index(name, span, unit, self.budget)?;
        Ok(())
    }
}

/// A path below the root of its file system.
fn path(scope: &Scope<'_>, node: &Node) -> Result<String> {
    const BYTES_MAX: usize = 255;
    let path = scope.text(node)?;
    let normal = |part: &str| !part.is_empty() && part != "." && part != "..";
    if path.len() <= BYTES_MAX && !path.contains('\0') && path.split('/').all(normal) {
        return Ok(path);
    }
    Err(Problem::new(
        node.span,
        format!(
            "expected a path below the file system's root, found \"{}\"",
            shorten(&path)
        ),
        format!("write a relative path without . and .., at most {BYTES_MAX} bytes: \"logs/data\""),
    ))
}

/// Sizes of the files of a set.
fn size_dist(scope: &Scope<'_>, node: &Node) -> Result<SizeDist> {
    let Value::Table(entries) = &node.value else {
        return Ok(SizeDist::Fixed(scope.size(node)?));
    };
    Fields::open(
        node,
        node.span,
        "a random size",
        &["uniform", "lognormal"],
        scope,
    )?;
    match entries.as_slice() {
        [entry] if entry.key == "uniform" => {
            let (low, high) = scope.interval(&entry.node, Scope::size)?;
            Ok(SizeDist::Uniform(low, high))
        }
        [entry] => {
            let keys = ["median", "sigma"];
            let fields = Fields::open(&entry.node, entry.node.span, "`lognormal`", &keys, scope)?;
            let median = fields.need("median", "median = \"16K\"", Scope::some_size)?;
            Ok(SizeDist::LogNormal(
                median,
                fields.need("sigma", "sigma = 1.5", Scope::sigma)?,
            ))
        }
        _ => Err(Problem::new(
            node.span,
            format!(
                "expected one of `uniform` and `lognormal`, found {} keys",
                entries.len()
            ),
            "write { uniform = [\"1K\", \"5M\"] } or { lognormal = { median = \"16K\", sigma = 1.5 } }",
        )),
    }
}

/// The unit in which a series is printed.
pub(crate) fn time_unit(scope: &Scope<'_>, node: &Node) -> Result<TimeUnit> {
    scope.choice(node, "a unit of time", &TIME_UNITS)
}

impl Objects {
    /// What a file name stands for.
    pub(crate) fn file_name(&self, scope: &Scope<'_>, node: &Node) -> Result<FileName> {
        let name = scope.text(node)?;
        self.file_names.get(&name).copied().ok_or_else(|| {
            Problem::new(
                node.span,
                format!("unknown file or fileset `{}`", shorten(&name)),
                format!(
                    "files are defined in [file.NAME] or [fileset.NAME]; {}",
                    suggest::help(&name, self.file_names.keys().map(String::as_str))
                ),
            )
        })
    }

    /// Index of a barrier.
    pub(crate) fn barrier(&self, scope: &Scope<'_>, node: &Node) -> Result<usize> {
        let name = scope.text(node)?;
        self.barriers
            .iter()
            .position(|barrier| barrier.name == name)
            .ok_or_else(|| {
                Problem::new(
                    node.span,
                    format!("unknown barrier `{}`", shorten(&name)),
                    format!(
                        "barriers are defined in sections [barrier.NAME]; {}",
                        suggest::help(
                            &name,
                            self.barriers.iter().map(|barrier| barrier.name.as_str())
                        )
                    ),
                )
            })
    }

    /// Index of a series, defining it at its first use. Two units for one series are an error.
    pub(crate) fn series_index(
        &mut self,
        name: &str,
        span: Span,
        unit: Option<TimeUnit>,
        budget: &mut Budget,
    ) -> Result<usize> {
        let Some(&index) = self.series_names.get(name) else {
            budget.charge(span, name.len())?;
            let series = Series {
                name: name.to_owned(),
                unit: unit.unwrap_or(TimeUnit::Microseconds),
            };
            let index = self.series.len();
            self.series.push(series);
            self.series_names.insert(name.to_owned(), index);
            self.series_spans.push((span, unit.is_some()));
            return Ok(index);
        };
        if let (Some(unit), Some(series), Some((earlier, stated))) = (
            unit,
            self.series.get_mut(index),
            self.series_spans.get_mut(index),
        ) {
            if *stated && series.unit != unit {
                return Err(Problem::new(
                    span,
                    format!("found a second unit for the series `{}`", shorten(name)),
                    "give the unit once, best in [series.NAME]",
                )
                .note(*earlier, "the first unit"));
            }
            series.unit = unit;
            *stated = true;
        }
        Ok(index)
    }

    /// Number of a pool of a task, adding it at its first use.
    pub(crate) fn pool(
        &mut self,
        scope: &Scope<'_>,
        node: &Node,
        task: TaskId,
        budget: &mut Budget,
    ) -> Result<PoolId> {
        let name = scope.text(node)?;
        identifier(&name, node.span, "a pool")?;
        let pools = self.pools.entry(task).or_default();
        if let Some(pool) = pools.iter().position(|known| *known == name) {
            return Ok(pool);
        }
        budget.charge(node.span, name.len())?;
        pools.push(name);
        Ok(pools.len() - 1)
    }

    /// Number of a pool in which statements before this one may have put something.
    pub(crate) fn known_pool(
        &self,
        scope: &Scope<'_>,
        node: &Node,
        task: TaskId,
    ) -> Result<PoolId> {
        let name = scope.text(node)?;
        let pools = self.pools.get(&task).map_or(&[][..], Vec::as_slice);
        pools
            .iter()
            .position(|known| *known == name)
            .ok_or_else(|| {
                Problem::new(
                    node.span,
                    format!("unknown pool `{}`", shorten(&name)),
                    format!(
                        "a task fills it first: {{ alloc = \"{}\", order = 9, count = 10 }}; {}",
                        shorten(&name),
                        suggest::help(&name, pools.iter().map(String::as_str))
                    ),
                )
            })
    }

    /// Index of a phase label, adding it at its first use.
    pub(crate) fn phase_index(
        &mut self,
        label: String,
        span: Span,
        budget: &mut Budget,
    ) -> Result<usize> {
        if let Some(&index) = self.phase_names.get(&label) {
            return Ok(index);
        }
        budget.charge(span, label.len())?;
        let index = self.phases.len();
        self.phases.push(label.clone());
        self.phase_names.insert(label, index);
        Ok(index)
    }
}

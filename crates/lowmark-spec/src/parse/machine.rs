//! Machines: a file under `machines/`, or the `[machine]` section of a workload.
//!
//! 1. The base is an empty machine, or the one that `use` names.
//! 2. Scalar fields replace those of the base; `node`s follow from `ram` or `nodes`.
//! 3. Devices and file systems of the same name replace the base's, others are added; a `swap` replaces
//!    all swap areas.
//! 4. The whole is checked: every device exists, areas fit and do not overlap.
//!
//! Fields and parts are declared once, here and in the files of the parts, each with how it is read and how it is
//! written ([`mod@super::write`]).

use crate::machine::{
    Arch, Atime, CPUS_MAX, FileSystem, FsKind, INODE_RATIO, Machine, Node as NumaNode,
};

use super::cited;
use super::costs;
use super::device;
use super::error::{Problem, Result};
use super::fields::{Field, Fields, field, keys, lines, unknown_key};
use super::fitted;
use super::forms::{self, FLAG, PAGE_OFFSET, TEXT, Word, size_text, up_to, word};
use super::scope::{Scope, identifier};
use super::source::Span;
use super::swap;
use super::tree::{Entry, Node};
use super::write::{Writer, header};
use super::zones;

impl Word for Arch {
    const WHAT: &'static str = "an architecture";
    const WORDS: &'static [(&'static str, Arch)] = &[
        ("x86-64", Arch::X86_64),
        ("x86-32", Arch::X86_32),
        ("ppc64", Arch::Ppc64),
    ];
}

impl Word for FsKind {
    const WHAT: &'static str = "a kind of file system";
    const WORDS: &'static [(&'static str, FsKind)] = &[
        ("xfs", FsKind::Xfs),
        ("ext4", FsKind::Ext4),
        ("ext3", FsKind::Ext3),
        ("tmpfs", FsKind::Tmpfs),
    ];
}

impl Word for Atime {
    const WHAT: &'static str = "a rule for access times";
    const WORDS: &'static [(&'static str, Atime)] =
        &[("relatime", Atime::Relatime), ("noatime", Atime::Noatime)];
}

/// Fields of `[machine]` that hold one value: those that `--set machine.NAME` can change.
static SCALARS: [Field<Machine>; 11] = [
    Field {
        // Its other lines are `[sources]`.
        write: |machine, _| (TEXT.write)(&cited::split(machine).0),
        ..field!("description", description, TEXT)
    },
    field!("arch", arch, word::<Arch>()),
    // RAM follows from this, or from `nodes`: `scalars`.
    Field::apart("ram", None, |machine, place| {
        match machine.nodes.as_slice() {
            [node] if !place.is_fitted("nodes") => Some(size_text(node.ram)),
            _ => None,
        }
    }),
    field!("cpus", cpus, up_to::<CPUS_MAX>(), needed "cpus = 2"),
    field!("memory_streams", memory_streams, up_to::<CPUS_MAX>()),
    field!("reserved", reserved, PAGE_OFFSET),
    field!("initmem", initmem, PAGE_OFFSET),
    field!("occupied", occupied, PAGE_OFFSET),
    field!("buffers", buffers, PAGE_OFFSET),
    field!("hz", hz, up_to::<10_000>()),
    field!("thp", thp, FLAG),
];

/// RAM of more than one node.
static NODES: [Field<Machine>; 1] = [Field::apart("nodes", None, |machine, place| {
    let many = machine.nodes.len() > 1 || place.is_fitted("nodes");
    let rams = machine.nodes.iter().map(|node| size_text(node.ram));
    many.then(|| format!("[{}]", rams.collect::<Vec<_>>().join(", ")))
})];

/// The fields of a file system.
static FILE_SYSTEM: [Field<FileSystem>; 4] = [
    field!("kind", kind, word::<FsKind>(), needed "kind = \"xfs\", \"ext4\", \"ext3\" or \"tmpfs\""),
    Field::apart("device", None, |fs, place| place.device(fs.device?)),
    field!("inode_ratio", inode_ratio, forms::INODE_RATIO),
    field!("atime", atime, word::<Atime>()),
];

/// A part of a machine: a section of a machine file, a key of `[machine]` in a workload.
struct Part {
    name: &'static str,
    /// Reads its value into the machine.
    read: fn(&Node, Description<'_>, &mut Machine, &Scope<'_>) -> Result<()>,
    /// Writes its sections.
    write: fn(&mut Writer<'_>),
}

/// All parts, in the order in which they are written; each finds what it speaks of in those before it.
static PARTS: [Part; 8] = [
    Part {
        name: "device",
        read: device::read_all,
        write: device::write_all,
    },
    Part {
        name: "swap",
        read: swap::read,
        write: swap::write,
    },
    Part {
        name: "filesystem",
        read: filesystems,
        write: write_filesystems,
    },
    Part {
        name: "zone",
        read: zones::read,
        write: zones::write,
    },
    Part {
        name: "costs",
        read: costs::read,
        write: costs::write,
    },
    Part {
        name: "kernel_costs",
        read: costs::read_of_kernels,
        write: costs::write_of_kernels,
    },
    Part {
        name: "sources",
        read: cited::read,
        write: cited::write,
    },
    Part {
        name: "fitted",
        read: fitted::read,
        write: fitted::write,
    },
];

/// The keys of [`SCALARS`].
pub(super) fn scalar_keys() -> Vec<&'static str> {
    keys(&SCALARS)
}

/// The fields of a file system.
pub(super) fn file_system_keys() -> Vec<&'static str> {
    keys(&FILE_SYSTEM)
}

fn part_names() -> impl Iterator<Item = &'static str> {
    PARTS.iter().map(|part| part.name)
}

/// Where the description of a machine stands.
#[derive(Clone, Copy)]
pub(crate) struct Description<'t> {
    /// The `[machine]` section.
    pub(crate) machine: &'t Entry,
    /// The table that holds the parts: the root of a machine file, or `[machine]` itself.
    pub(crate) parts: &'t Node,
    /// Whether this is a machine file, which must name its sources.
    pub(crate) file: bool,
}

/// Reads a description on top of `base`.
pub(crate) fn read(
    description: Description<'_>,
    base: Option<Machine>,
    name: &str,
    scope: &Scope<'_>,
) -> Result<Machine> {
    let Description {
        machine: Entry { key_span, node, .. },
        parts,
        file,
    } = description;
    let mut keys = keys(SCALARS.iter().chain(&NODES));
    if file {
        // A machine file keeps its parts outside of [machine].
        let sections: Vec<&str> = part_names().chain(["lowmark", "machine"]).collect();
        if let Some(entry) = parts
            .entries("sections")?
            .iter()
            .find(|entry| !sections.contains(&entry.key.as_str()))
        {
            return Err(unknown_key(entry, "a machine file", &sections));
        }
    } else {
        keys.extend(part_names().chain(["use"]));
    }
    let fields = Fields::open(node, *key_span, "[machine]", &keys, scope)?;
    let fresh = base.is_none();
    let mut machine = base.unwrap_or_else(|| empty(name));
    scalars(&fields, &mut machine, fresh)?;
    // Where file systems and swap areas name a device that is missing, the error is about the file systems.
    let (first, others): (Vec<&Part>, Vec<&Part>) = PARTS
        .iter()
        .partition(|part| ["device", "filesystem"].contains(&part.name));
    for part in first.into_iter().chain(others) {
        if let Some(node) = parts.get(part.name) {
            (part.read)(node, description, &mut machine, scope)?;
        }
    }
    if file {
        cited::check(parts, &machine)?;
    }
    check_memory(&machine, *key_span)?;
    check_buffers(&machine, *key_span)?;
    Ok(machine)
}

/// A machine of which nothing is said.
fn empty(name: &str) -> Machine {
    Machine {
        name: name.to_owned(),
        nodes: Vec::new(),
        devices: Vec::new(),
        swap: Vec::new(),
        ..Machine::small(0, 0)
    }
}

/// Writes a machine file.
pub(super) fn write(writer: &mut Writer<'_>) {
    let machine = writer.machine;
    let fields = SCALARS.iter().chain(&NODES);
    let lines = lines(fields, machine, &empty(&machine.name), &writer.place(""));
    writer.section("[machine]", &lines);
    for part in &PARTS {
        (part.write)(writer);
    }
}

fn scalars(fields: &Fields<'_, '_>, machine: &mut Machine, fresh: bool) -> Result<()> {
    const RAM_MIN: u64 = 1 << 20;
    const NODES_MAX: usize = 64;
    fields.either("ram", "nodes")?;
    let ram = |scope: &Scope<'_>, node: &Node| {
        let bytes = scope.size(node)?;
        if bytes >= RAM_MIN {
            let ram = scope.page_offset(node)?;
            return Ok(NumaNode { ram });
        }
        let message = format!("expected at least 1 MiB of RAM, found {bytes} bytes");
        Err(Problem::new(
            node.span,
            message,
            "write a size with its unit, such as \"900M\"",
        ))
    };
    if let Some(node) = fields.maybe("ram", ram)? {
        (machine.nodes, machine.zones) = (vec![node], Vec::new());
    }
    if let Some(node) = fields.node("nodes") {
        let nodes = node.elements("the RAM of each node")?;
        if nodes.is_empty() || nodes.len() > NODES_MAX {
            let message = format!("expected 1 to {NODES_MAX} nodes, found {}", nodes.len());
            return Err(Problem::new(
                node.span,
                message,
                "write nodes = [\"32G\", \"32G\"]",
            ));
        }
        machine.nodes = nodes
            .iter()
            .map(|node| ram(fields.scope, node))
            .collect::<Result<_>>()?;
    }
    if machine.nodes.is_empty() {
        return Err(fields.missing("ram", "ram = \"900M\", or nodes = [\"32G\", \"32G\"]"));
    }
    fields.fill(&SCALARS, machine, fresh)
}

fn check_memory(machine: &Machine, span: Span) -> Result<()> {
    let first = machine.nodes.first().map_or(0, |node| node.ram);
    let total = machine
        .nodes
        .iter()
        .try_fold(0_u64, |sum, node| sum.checked_add(node.ram));
    let taken = machine.reserved.checked_add(machine.occupied);
    let at_boot = machine.reserved.checked_add(machine.initmem);
    match (total, taken, at_boot) {
        (Some(total), Some(taken), Some(at_boot)) if taken < total && at_boot < first => Ok(()),
        _ => Err(Problem::new(
            span,
            format!(
                "expected `reserved` ({}), `initmem` ({}) and `occupied` ({}) to leave some RAM of node 0 \
                 ({first} bytes)",
                machine.reserved, machine.initmem, machine.occupied
            ),
            "lower `reserved`, `initmem` or `occupied`, or give the machine more RAM",
        )),
    }
}

/// What is in the page cache is a part of what is in use.
fn check_buffers(machine: &Machine, span: Span) -> Result<()> {
    if machine.buffers <= machine.occupied {
        return Ok(());
    }
    Err(Problem::new(
        span,
        format!(
            "expected `buffers` ({}) to be at most `occupied` ({}), of which it is a part",
            machine.buffers, machine.occupied
        ),
        "lower `buffers`, or raise `occupied`",
    ))
}

/// The named tables of a section such as `[device.NAME]`.
pub(super) fn named<'t>(node: &'t Node, section: &str) -> Result<&'t [Entry]> {
    let entries = node.entries(&format!("one table for each {section}"))?;
    for entry in entries {
        identifier(&entry.key, entry.key_span, &format!("a {section}"))?;
    }
    Ok(entries)
}

/// Replaces the item of the same name, or adds it.
pub(super) fn put<T>(items: &mut Vec<T>, item: T, same: impl Fn(&T) -> bool) {
    match items.iter_mut().find(|other| same(other)) {
        Some(other) => *other = item,
        None => items.push(item),
    }
}

fn filesystems(
    node: &Node,
    _: Description<'_>,
    machine: &mut Machine,
    scope: &Scope<'_>,
) -> Result<()> {
    for entry in named(node, "filesystem")? {
        let owner = format!("the file system `{}`", entry.key);
        let keys = keys(&FILE_SYSTEM);
        let fields = Fields::open(&entry.node, entry.key_span, &owner, &keys, scope)?;
        // What is not said of a file system that the machine has already stays as it is.
        let mut known = machine.filesystems.iter();
        let known = known.find(|known| known.name == entry.key).cloned();
        let new = known.is_none();
        let mut filesystem = known.unwrap_or_else(|| no_filesystem(&entry.key));
        fields.fill(&FILE_SYSTEM, &mut filesystem, new)?;
        filesystem.device = if filesystem.kind == FsKind::Tmpfs {
            fields.refuse("device", "but tmpfs lives in memory", "remove `device`")?;
            None
        } else {
            let index =
                |scope: &Scope<'_>, node: &Node| device::index(scope, node, &machine.devices);
            match fields.maybe("device", index)?.or(filesystem.device) {
                Some(device) => Some(device),
                None => return Err(fields.missing("device", "device = \"sda\"")),
            }
        };
        put(&mut machine.filesystems, filesystem, |other| {
            other.name == entry.key
        });
    }
    Ok(())
}

/// A file system of which nothing is said.
fn no_filesystem(name: &str) -> FileSystem {
    FileSystem {
        name: name.to_owned(),
        kind: FsKind::Tmpfs,
        device: None,
        inode_ratio: INODE_RATIO,
        atime: Atime::default(),
    }
}

fn write_filesystems(writer: &mut Writer<'_>) {
    for fs in &writer.machine.filesystems {
        let place = writer.place(&format!("filesystem.{}", fs.name));
        let lines = lines(&FILE_SYSTEM, fs, &no_filesystem(&fs.name), &place);
        writer.section(&header("filesystem", &fs.name), &lines);
    }
}

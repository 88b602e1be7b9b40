//! What statements and tasks refer to by index.

use super::CgroupId;
use serde::{Deserialize, Serialize};

/// A file that exists when the run starts, or that a statement creates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Path relative to the file system's root.
    pub path: String,
    /// File system by name; the machine's first when empty.
    pub fs: String,
    /// What it holds.
    pub kind: FileKind,
    /// Size in bytes.
    pub size: u64,
    /// Whether it exists before the run (otherwise a `create` or `write` makes it).
    pub exists: bool,
    /// Unlinked after opening: its pages go when the last user closes it.
    pub unlinked: bool,
}

/// Content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileKind {
    /// Holes: reads give zeroes without I/O.
    Sparse,
    /// Written zeroes.
    Zero,
    /// Incompressible.
    Random,
}

/// Many files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSet {
    /// Name.
    pub name: String,
    /// File system by name; the machine's first when empty.
    pub fs: String,
    /// Directories.
    pub directories: u64,
    /// Files in each directory.
    pub files: u64,
    /// Size of a file.
    pub size: SizeDist,
    /// Content.
    pub kind: FileKind,
    /// Whether they exist before the run.
    pub exists: bool,
}

/// Sizes of the files of a set, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SizeDist {
    /// All alike.
    Fixed(u64),
    /// Uniform over the closed interval.
    Uniform(u64, u64),
    /// Log-normal with this median and sigma in thousandths.
    LogNormal(u64, u32),
}

/// A memory cgroup, as cgroup v2 has it, or v1 if any group of the workload has a soft limit. Limits and protections are
/// bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// Name of its directory.
    pub name: String,
    /// Its directory below the root: the names of the groups that it is in, and its own, with `/` between them.
    pub path: String,
    /// The group that it is in, which comes before it; none: the root.
    pub parent: Option<CgroupId>,
    /// `memory.max`, `memory.limit_in_bytes` of v1: charges beyond it have to reclaim first.
    pub max: Option<u64>,
    /// `memory.high`: tasks beyond it reclaim before they go on, and are slowed down.
    pub high: Option<u64>,
    /// `memory.low`: so much is left alone as long as anything else can be reclaimed.
    pub low: Option<u64>,
    /// `memory.min`: so much is never reclaimed.
    pub min: Option<u64>,
    /// `memory.swap.max`: so much of the group's memory may be in swap.
    pub swap_max: Option<u64>,
    /// `memory.soft_limit_in_bytes` of v1: when memory is short, what is beyond it is reclaimed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft: Option<u64>,
}

impl Cgroup {
    /// Files of a cgroup of version 2, and what is written into each, bytes.
    pub fn files(&self) -> [(&'static str, Option<u64>); 5] {
        [
            ("memory.min", self.min),
            ("memory.low", self.low),
            ("memory.high", self.high),
            ("memory.max", self.max),
            ("memory.swap.max", self.swap_max),
        ]
    }
}

/// A barrier and how many instances must arrive before it opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Barrier {
    /// Name.
    pub name: String,
    /// Arrivals that open it.
    pub parties: u64,
}

/// A series of samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Name, as it appears in tables.
    pub name: String,
    /// Unit for printing; samples are taken in ns.
    pub unit: TimeUnit,
}

/// Unit in which a time is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeUnit {
    /// ns
    Nanoseconds,
    /// µs
    Microseconds,
    /// ms
    Milliseconds,
    /// 10 ms, the unit of `times(2)` and of kernel mails
    Centiseconds,
    /// s
    Seconds,
}

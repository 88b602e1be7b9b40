//! Machines: nodes, RAM, CPUs, block devices, swap areas and CPU costs.
//!
//! A machine is a value. It comes from a file under `machines/` (see [`crate::parse`]) or is built in
//! code with [`Machine::small`]. Sizes are bytes, times are nanoseconds.

mod costs;

pub use costs::Costs;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes in a base page, on every machine of the model.
pub const PAGE_SIZE: u64 = 4096;

/// Which zones a node of this machine has (`spec` of the kernel's `MAX_NR_ZONES` choice).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arch {
    /// DMA below 16 MiB, DMA32 below 4 GiB, Normal above; huge page 2 MiB.
    X86_64,
    /// DMA below 16 MiB, Normal below 896 MiB, HighMem above.
    X86_32,
    /// One zone (DMA); huge page 16 MiB.
    Ppc64,
}

/// One NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// RAM of the node in bytes, a multiple of [`PAGE_SIZE`].
    pub ram: u64,
}

/// Zones that RAM is divided into, lowest first (`enum zone_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ZoneKind {
    /// Below 16 MiB.
    Dma,
    /// Below 4 GiB.
    Dma32,
    /// The rest, or up to 896 MiB on 32 bits.
    Normal,
    /// Above what a 32-bit kernel maps.
    HighMem,
}

/// A zone as a kernel reports it in `/proc/zoneinfo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// Node.
    pub node: usize,
    /// Which zone.
    pub kind: ZoneKind,
    /// `present`, pages.
    pub present: u64,
    /// `managed`, pages.
    pub managed: u64,
    /// Those of them that only booting needed, as in [`Machine::initmem`], pages.
    #[serde(default)]
    pub initmem: u64,
    /// Movable pageblocks that booting has left with pages in use. What else is free lies side by side.
    #[serde(default)]
    pub movable: Pageblocks,
    /// Reclaimable pageblocks. If a machine gives none, one of 32 pages in use outside of movable pageblocks is reclaimable.
    #[serde(default)]
    pub reclaimable: Pageblocks,
    /// Free pages that CPUs keep for themselves when the workload begins (`count` of all pagesets), pages. Watermarks do not
    /// know of them, and a CPU does not get those of another one before it reclaims.
    #[serde(default)]
    pub kept: u64,
}

impl Zone {
    /// A zone of which no more is known.
    #[must_use]
    pub const fn new(node: usize, kind: ZoneKind, present: u64, managed: u64) -> Zone {
        const NONE: Pageblocks = Pageblocks {
            count: 0,
            free: [0; PAGEBLOCK_ORDERS],
        };
        Zone {
            node,
            kind,
            present,
            managed,
            initmem: 0,
            movable: NONE,
            reclaimable: NONE,
            kept: 0,
        }
    }
}

/// Orders up to that of a pageblock of 2 MiB.
pub const PAGEBLOCK_ORDERS: usize = 10;

/// Pageblocks of one migrate type with pages in use, as in `/proc/pagetypeinfo`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pageblocks {
    /// How many there are at least; more if their free blocks need more.
    pub count: u64,
    /// Their free blocks, by order.
    pub free: [u64; PAGEBLOCK_ORDERS],
}

/// Most CPUs that a machine may have.
pub const CPUS_MAX: u32 = 4096;

fn cpus_max() -> u32 {
    CPUS_MAX
}

/// A machine on which a workload runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name, as `machines/NAME.toml` has it.
    pub name: String,
    /// What it is and where its figures come from.
    pub description: String,
    /// Zone layout.
    pub arch: Arch,
    /// NUMA nodes, node 0 first; at least one.
    pub nodes: Vec<Node>,
    /// CPUs, spread round-robin over the nodes; at least one.
    pub cpus: u32,
    /// CPUs that memory serves at full speed; at least one. When more are busy, touching, clearing, filling and copying a
    /// page take each of them longer in proportion. [`CPUS_MAX`]: memory is never short of bandwidth.
    #[serde(default = "cpus_max")]
    pub memory_streams: u32,
    /// RAM that the kernel image, `struct page` and the firmware keep: never managed by the allocator.
    /// Taken from node 0.
    pub reserved: u64,
    /// RAM that only booting needs, the kernel's init sections and its initramfs: managed when the
    /// workload begins, but not yet when watermarks and reserves are computed. On node 0, in the zone
    /// where the kernel lies.
    pub initmem: u64,
    /// Memory pinned by everything that the workload does not describe: slab, page tables, daemons.
    /// Managed pages, allocated at boot, never reclaimable.
    pub occupied: u64,
    /// The part of `occupied` that is metadata of file systems in the page cache of their devices (`Buffers` of
    /// `/proc/meminfo`), which reclaim can take: that of the files which exist before the run, as if they had just been made.
    #[serde(default)]
    pub buffers: u64,
    /// Zones as a kernel reported them, node by node and lowest first; empty for those that follow from
    /// `arch`, the RAM and `reserved`.
    #[serde(default)]
    pub zones: Vec<Zone>,
    /// Timer frequency in Hz (`CONFIG_HZ`): timeouts are rounded up to whole jiffies.
    pub hz: u32,
    /// Whether the kernel boots with transparent huge pages, which raise `min_free_kbytes`. On less than 512 MiB it does not
    /// switch them on.
    pub thp: bool,
    /// Block devices.
    pub devices: Vec<Device>,
    /// Swap areas in the order of `swapon`.
    pub swap: Vec<SwapArea>,
    /// File systems.
    pub filesystems: Vec<FileSystem>,
    /// What work costs on a CPU of this machine.
    pub costs: Costs,
    /// The same under kernels whose own code was measured to take another time for it, by version. Runs do not take
    /// these by themselves, so that kernels side by side differ in what they decide alone: [`Machine::under_kernel`].
    #[serde(default)]
    pub kernel_costs: BTreeMap<String, Costs>,
    /// Constants that were fitted to published figures, by their dotted names, each with what it was fitted to:
    /// `evaluation::table`, `evaluation::table::row` or `evaluation::table::row::column`. Says how far to trust a report
    /// that judges by these figures; nothing of a run depends on it, and recordings do not have it.
    #[serde(skip)]
    pub fitted: BTreeMap<String, Vec<String>>,
}

/// How a device moves data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// Rotating disk: one head shared by reads and writes.
    Hdd,
    /// Flash with a seek penalty on reads that do not continue the previous read, none on writes.
    Ssd,
}

/// I/O scheduler of a request queue (legacy names, as in `/sys/block/*/queue/scheduler`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Elevator {
    /// First in, first out.
    Noop,
    /// Sorted batches with expiry, reads first.
    Deadline,
    /// Per-process sync queues with idling, shared async queue.
    Cfq,
}

/// A driver whose requests are not those of a disk behind SCSI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Driver {
    /// `virtio_blk`, on a split ring with indirect descriptors. It allocates memory for each request.
    VirtioBlk,
    /// `nvme`. What memory it needs for requests is left out.
    Nvme,
}

/// Pieces of a request to a virtio disk at most: its ring has 256 descriptors, of which two are for the header and the
/// status.
pub const VIRTIO_SEGMENTS: u32 = 254;

/// What drivers that say nothing else take (`BLK_MAX_SEGMENTS`).
pub const MAX_SEGMENTS: u32 = 128;

/// A block device with its request queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Name, such as `sda`.
    pub name: String,
    /// Physics.
    pub kind: DeviceKind,
    /// `queue/rotational`, read by swapon and by the elevator.
    pub rotational: bool,
    /// Size in bytes.
    pub size: u64,
    /// Repositioning before a read that is not contiguous, ns.
    pub position_read_ns: u64,
    /// Repositioning before a write that is not contiguous, ns (write cache included).
    pub position_write_ns: u64,
    /// Fixed cost of a read command, ns.
    pub command_read_ns: u64,
    /// Fixed cost of a write command, ns.
    pub command_write_ns: u64,
    /// Transfer time of one page read, ns.
    pub page_ns: u64,
    /// Transfer time of one page written, ns.
    pub page_write_ns: u64,
    /// A forward gap of at most this many pages costs their transfer time instead of a repositioning.
    pub skip_pages: u64,
    /// Bytes that a disk goes on reading into its buffer after a read, while the host thinks; 0 for none.
    pub read_ahead: u64,
    /// Bytes of an erase block of flash that does not hide them, such as memory sticks; 0 for others.
    pub erase_block: u64,
    /// Erase blocks that are written at once; one more costs the copy of a block.
    pub open_blocks: u32,
    /// Commands that the device takes at once (NCQ: 31); it works them off in that order.
    pub queue_depth: u32,
    /// Of these, commands whose fixed costs run side by side; transfers share one link.
    pub parallelism: u32,
    /// Largest request that it takes, bytes (`max_hw_sectors_kb`); none: any. The kernel has a bound of its own.
    pub max_request: Option<u64>,
    /// Pieces of memory of a request at most (`queue/max_segments`).
    pub max_segments: u32,
    /// Its driver; none: one behind SCSI, what memory it needs for requests left out.
    pub driver: Option<Driver>,
    /// Queues in which the driver takes requests, at least 1: virtqueues, or submission queues of NVMe.
    pub hardware_queues: u32,
    /// `queue/nr_requests`, counted for sync and async separately.
    pub nr_requests: u32,
    /// `queue/scheduler`.
    pub elevator: Elevator,
    /// Equal devices that this one is striped over (md RAID0), at least 1. All other figures but `size` are
    /// those of each of them.
    pub members: u32,
    /// Bytes on a member before the next one follows, a multiple of [`PAGE_SIZE`].
    pub chunk: u64,
    /// `/sys/class/bdi/*/min_ratio`: percent of the dirty threshold that are kept for it.
    pub min_ratio: u64,
    /// `/sys/class/bdi/*/max_ratio`: percent of the dirty threshold that it may have.
    pub max_ratio: u64,
    /// `/sys/class/bdi/*/strict_limit`: its writers are held back by its own share alone.
    pub strictlimit: bool,
    /// Of what was written before the workload begins, what was to this device, percent. Kernels up to 3.5 know shares
    /// in dirty pages by that, later ones forget it.
    pub written_share: u64,
    /// Writes that fail; none for a device that is well.
    pub write_errors: Option<WriteErrors>,
    /// The NFS server that the device is in; none for a device of the machine itself.
    pub server: Option<Server>,
}

/// An NFS server with one disk, and the network on the way to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Time that a call without data and its reply are on the network, ns.
    pub round_trip_ns: u64,
    /// Transfer time of a page on the network, ns; both directions are independent.
    pub page_ns: u64,
    /// Calls under way at once (`sunrpc.tcp_slot_table_entries`).
    pub slots: u32,
    /// Most that one call reads or writes, bytes (`rsize`, `wsize`).
    pub wsize: u64,
    /// Calls that the server works on at once (threads of nfsd).
    pub threads: u32,
    /// Memory of the server for files, bytes: above a tenth of it dirty it writes to its disk, above a fifth
    /// writes wait for that.
    pub ram: u64,
}

/// Which writes to a device fail: of those that touch a region, after the device has written so much, every
/// so many-th.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteErrors {
    /// Where the region begins, bytes.
    pub start: u64,
    /// Its size, bytes.
    pub size: u64,
    /// Bytes that the device takes before the first write fails.
    pub after: u64,
    /// Of the requests that would fail, every so many-th does.
    pub every: u64,
    /// Requests that fail at most.
    pub count: u64,
}

/// A swap area on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapArea {
    /// Index into [`Machine::devices`].
    pub device: usize,
    /// Where the area starts on the device, bytes.
    pub start: u64,
    /// Size in bytes, header page included.
    pub size: u64,
    /// Priority; higher first. `swapon` without `-p` gives -1, -2, …
    pub priority: i32,
    /// Whether the area is a file of a file system, which lies in one piece, and no partition (`SWP_BLKDEV`).
    #[serde(default)]
    pub file: bool,
}

/// How a file system places data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FsKind {
    /// Delayed allocation in large extents, one allocation group per directory.
    Xfs,
    /// Block groups with multi-block allocation.
    Ext4,
    /// Block groups; blocks are allocated as pages are written to, and a journal writes their data (`data=ordered`). Its
    /// driver is in kernels up to 4.2.
    Ext3,
    /// No device: pages live in memory and swap.
    Tmpfs,
}

/// Whether reading a file changes its inode: the time of its last access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Atime {
    /// The first time since it was last written to (`MNT_RELATIME`, the default since 2.6.30). That the time is older than a
    /// day is left out.
    #[default]
    Relatime,
    /// Never (`MNT_NOATIME`).
    Noatime,
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Name by which files refer to it.
    pub name: String,
    /// Allocation policy.
    pub kind: FsKind,
    /// Index into [`Machine::devices`]; none for tmpfs.
    pub device: Option<usize>,
    /// Bytes for which ext3 and ext4 have an inode (`mke2fs -i`).
    #[serde(default = "inode_ratio")]
    pub inode_ratio: u64,
    /// Whether reading changes inodes.
    #[serde(default)]
    pub atime: Atime,
}

/// What mke2fs.conf(5) has for `inode_ratio`.
pub const INODE_RATIO: u64 = 16 << 10;

/// What a recording means that does not say.
fn inode_ratio() -> u64 {
    INODE_RATIO
}

impl Machine {
    /// A one-node x86-64 machine of `ram` bytes with one solid-state disk and `swap` bytes of swap on
    /// it: the ground on which tests and examples stand.
    pub fn small(ram: u64, swap: u64) -> Machine {
        Machine {
            name: "small".into(),
            description: "one node, one CPU, one solid-state disk".into(),
            arch: Arch::X86_64,
            nodes: vec![Node { ram }],
            cpus: 1,
            memory_streams: CPUS_MAX,
            reserved: 0,
            initmem: 0,
            occupied: 0,
            buffers: 0,
            zones: Vec::new(),
            hz: 250,
            thp: false,
            devices: vec![Device::ssd("sda", (swap * 2).max(1 << 30))],
            swap: if swap == 0 {
                Vec::new()
            } else {
                vec![SwapArea {
                    device: 0,
                    start: 0,
                    size: swap,
                    priority: -1,
                    file: false,
                }]
            },
            filesystems: Vec::new(),
            costs: Costs::default(),
            kernel_costs: BTreeMap::new(),
            fitted: BTreeMap::new(),
        }
    }

    /// The machine with the costs that were measured under a kernel, where they are known: what a run beside that very
    /// kernel takes.
    pub fn under_kernel(mut self, version: &str) -> Machine {
        if let Some(costs) = self.kernel_costs.remove(version) {
            self.costs = costs;
        }
        self.kernel_costs.clear();
        self
    }

    /// RAM of all nodes in bytes: what `RAM` means in size expressions.
    pub fn ram(&self) -> u64 {
        self.nodes.iter().map(|n| n.ram).sum()
    }

    /// RAM that the kernel manages in bytes, `MemTotal` of `/proc/meminfo`: what `MEMTOTAL` means in size expressions.
    pub fn mem_total(&self) -> u64 {
        self.ram().saturating_sub(self.reserved)
    }
}

impl Device {
    /// A device of which nothing is known but its kind: 0 bytes, commands that take no time, and the queue of a SATA disk
    /// of the time of CFQ. What a file does not say of a device is as it is here.
    pub fn bare(name: &str, kind: DeviceKind) -> Device {
        Device {
            name: name.to_owned(),
            kind,
            rotational: kind == DeviceKind::Hdd,
            size: 0,
            position_read_ns: 0,
            position_write_ns: 0,
            command_read_ns: 0,
            command_write_ns: 0,
            page_ns: 0,
            page_write_ns: 0,
            skip_pages: 0,
            read_ahead: 0,
            erase_block: 0,
            open_blocks: 1,
            queue_depth: 31,
            parallelism: 1,
            max_request: None,
            max_segments: MAX_SEGMENTS,
            driver: None,
            hardware_queues: 1,
            nr_requests: 128,
            elevator: Elevator::Cfq,
            members: 1,
            chunk: 512 << 10,
            min_ratio: 0,
            max_ratio: 100,
            strictlimit: false,
            written_share: 0,
            write_errors: None,
            server: None,
        }
    }

    /// A SATA solid-state disk of 2013 (Intel DC S3700 class: 100 µs random read, 500 MB/s).
    pub fn ssd(name: &str, size: u64) -> Device {
        Device {
            size,
            position_read_ns: 100_000,
            command_read_ns: 20_000,
            command_write_ns: 20_000,
            page_ns: 8_192,
            page_write_ns: 8_192,
            ..Device::bare(name, DeviceKind::Ssd)
        }
    }

    /// A 7200 rpm desktop disk of 2012 (100 MB/s, 7.6 ms per repositioning within a swap partition).
    pub fn hdd(name: &str, size: u64) -> Device {
        Device {
            size,
            position_read_ns: 7_600_000,
            position_write_ns: 3_800_000,
            command_read_ns: 62_000,
            page_ns: 42_000,
            page_write_ns: 42_000,
            skip_pages: 64,
            read_ahead: 1 << 20,
            ..Device::bare(name, DeviceKind::Hdd)
        }
    }
}

//! Allocation flags: one set of bits for all eras, and the names of each era.
//!
//! In an event a set of flags is kept in bits of our own. Kernels before 4.4 had no bit for waking kswapd:
//! everybody woke it except with `GFP_NO_KSWAPD`. Here that is [`KSWAPD_RECLAIM`] in every era, and the old
//! `__GFP_WAIT` is [`DIRECT_RECLAIM`]. What a kernel has no name for is kept as a number in the upper bits
//! ([`UNNAMED_SHIFT`]).
//!
//! Writing follows `__print_flags`: the names of the era's table in its order, each if all its bits are
//! still there, which are then done with; the rest in hexadecimal.
//!
//! A few names had other flags once, and text does not tell which: `GFP_TRANSHUGE` is read as that of 4.9 and
//! later, without `__GFP_NORETRY`, `GFP_NOWAIT` as that before 6.18, without `__GFP_NOWARN`.

use crate::release::Release;
use std::io::Write;

/// First bit of what has no name: the kernel's own bits, as printed.
pub const UNNAMED_SHIFT: u32 = 36;

macro_rules! flags {
    ($( $(#[doc = $doc:literal])* $flag:ident = $bit:literal $( , $alias:literal )* ; )*) => {
        $( $(#[doc = $doc])* pub const $flag: u64 = 1 << $bit; )*

        /// Single flags by the names that they have had, without prefix.
        const NAMES: &[(&str, u64)] = &[ $( (stringify!($flag), $flag), $( ($alias, $flag), )* )* ];
    };
}

flags! {
    /// From ZONE_DMA.
    DMA = 0;
    /// From ZONE_HIGHMEM too.
    HIGHMEM = 1;
    /// From ZONE_DMA32.
    DMA32 = 2;
    /// Can be migrated.
    MOVABLE = 3;
    /// Can be reclaimed by a shrinker.
    RECLAIMABLE = 4;
    /// May use the reserves in part.
    HIGH = 5;
    /// May start I/O.
    IO = 6;
    /// May call into a file system.
    FS = 7;
    /// Returns zeroed pages.
    ZERO = 8;
    /// Cannot sleep and may use reserves (4.4 to 6.2).
    ATOMIC = 9;
    /// May enter direct reclaim (`__GFP_WAIT` before 4.4).
    DIRECT_RECLAIM = 10, "WAIT";
    /// Wakes kswapd.
    KSWAPD_RECLAIM = 11;
    /// The page will be dirtied.
    WRITE = 12;
    /// No warning on failure.
    NOWARN = 13;
    /// Tries hard, may fail (`__GFP_REPEAT` before 4.13).
    RETRY_MAYFAIL = 14, "REPEAT";
    /// Never fails.
    NOFAIL = 15;
    /// Tries once.
    NORETRY = 16;
    /// May use all memory.
    MEMALLOC = 17;
    /// Compound page.
    COMP = 18;
    /// Leaves the reserves alone.
    NOMEMALLOC = 19;
    /// Keeps to the cpuset.
    HARDWALL = 20;
    /// This node only.
    THISNODE = 21;
    /// Charged to the memory cgroup.
    ACCOUNT = 22;
    /// Zeroes the tags too.
    ZEROTAGS = 23;
    /// No object extensions.
    NO_OBJ_EXT = 24;
    /// Cold page (to 4.14).
    COLD = 25;
    /// Accounted as another node's (to 4.10).
    OTHER_NODE = 26;
    /// Not tracked by kmemcheck (to 4.14).
    NOTRACK = 27;
    /// No zeroing by hardware.
    SKIP_ZERO = 28;
    /// No tagging.
    SKIP_KASAN = 29, "SKIP_KASAN_POISON", "SKIP_KASAN_UNPOISON";
    /// Not seen by lockdep.
    NOLOCKDEP = 30;
}

/// `__GFP_RECLAIM`.
pub const RECLAIM: u64 = DIRECT_RECLAIM | KSWAPD_RECLAIM;
/// `GFP_KERNEL`.
pub const KERNEL: u64 = RECLAIM | IO | FS;
/// `GFP_USER`.
pub const USER: u64 = KERNEL | HARDWALL;
/// `GFP_HIGHUSER`.
pub const HIGHUSER: u64 = USER | HIGHMEM;
/// `GFP_HIGHUSER_MOVABLE`.
pub const HIGHUSER_MOVABLE: u64 = HIGHUSER | MOVABLE;
/// `GFP_TRANSHUGE_LIGHT`.
pub const TRANSHUGE_LIGHT: u64 = (HIGHUSER_MOVABLE | COMP | NOMEMALLOC | NOWARN) & !RECLAIM;
/// `GFP_TRANSHUGE` since 4.9.
pub const TRANSHUGE: u64 = TRANSHUGE_LIGHT | DIRECT_RECLAIM;

/// What one name in text stands for. Old names have no underscores even for single flags.
fn named(name: &str) -> Option<u64> {
    let composite = match name {
        "GFP_TRANSHUGE" => TRANSHUGE,
        "GFP_TRANSHUGE_LIGHT" => TRANSHUGE_LIGHT,
        "GFP_HIGHUSER_MOVABLE" => HIGHUSER_MOVABLE,
        "GFP_HIGHUSER" => HIGHUSER,
        "GFP_USER" => USER,
        "GFP_TEMPORARY" => USER & !HARDWALL | RECLAIMABLE,
        "GFP_KERNEL_ACCOUNT" => KERNEL | ACCOUNT,
        "GFP_KERNEL" => KERNEL,
        "GFP_NOFS" => RECLAIM | IO,
        "GFP_ATOMIC" => HIGH | KSWAPD_RECLAIM,
        "GFP_NOIO" => RECLAIM,
        "GFP_NOWAIT" => KSWAPD_RECLAIM,
        "__GFP_RECLAIM" => RECLAIM,
        // Before 4.4 waiting was one flag, and everybody woke kswapd.
        "GFP_WAIT" => RECLAIM,
        "GFP_NO_KSWAPD" | "none" => 0,
        _ => {
            let bare = name
                .strip_prefix("__GFP_")
                .or_else(|| name.strip_prefix("GFP_"))?;
            return NAMES
                .iter()
                .find(|(n, _)| *n == bare)
                .map(|(_, bits)| *bits);
        }
    };
    Some(composite)
}

/// Whether only kernels before 4.6 print this name: a single flag without underscores. `GFP_DMA` and
/// `GFP_DMA32` are still printed so, `GFP_ATOMIC` is more than one flag.
fn is_old(name: &str) -> bool {
    let bare = name
        .strip_prefix("GFP_")
        .filter(|b| !matches!(*b, "DMA" | "DMA32" | "ATOMIC"));
    bare.is_some_and(|bare| NAMES.iter().any(|(n, _)| *n == bare))
}

/// Reads a set of flags as any era prints it; none if a name is unknown.
pub fn parse(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let mut set = 0;
    let mut old = false;
    let mut no_kswapd = false;
    for name in text.split('|') {
        if let Some(digits) = name.strip_prefix("0x") {
            let bits = u64::from_str_radix(digits, 16).ok()?;
            set |= bits.checked_shl(UNNAMED_SHIFT)?;
            continue;
        }
        // Composites are the same in both; a single flag without underscores is an old one.
        old |= is_old(name);
        no_kswapd |= name == "GFP_NO_KSWAPD";
        set |= named(name)?;
    }
    if old && !no_kswapd {
        set |= KSWAPD_RECLAIM;
    }
    if no_kswapd {
        set &= !KSWAPD_RECLAIM;
    }
    Some(set)
}

/// Stands for `GFP_NO_KSWAPD` while an old kernel's set is written.
const NO_KSWAPD: u64 = 1 << 31;

/// 2.6.36 to 4.5, Table A of the fact sheet.
const OLD: &[(u64, &str)] = &[
    ((TRANSHUGE | NORETRY | NO_KSWAPD), "GFP_TRANSHUGE"),
    (HIGHUSER_MOVABLE & !KSWAPD_RECLAIM, "GFP_HIGHUSER_MOVABLE"),
    (HIGHUSER & !KSWAPD_RECLAIM, "GFP_HIGHUSER"),
    (USER & !KSWAPD_RECLAIM, "GFP_USER"),
    (DIRECT_RECLAIM | IO | FS | RECLAIMABLE, "GFP_TEMPORARY"),
    (DIRECT_RECLAIM | IO | FS, "GFP_KERNEL"),
    (DIRECT_RECLAIM | IO, "GFP_NOFS"),
    (HIGH, "GFP_ATOMIC"),
    (DIRECT_RECLAIM, "GFP_NOIO"),
    (IO, "GFP_IO"),
    (COLD, "GFP_COLD"),
    (NOWARN, "GFP_NOWARN"),
    (RETRY_MAYFAIL, "GFP_REPEAT"),
    (NOFAIL, "GFP_NOFAIL"),
    (NORETRY, "GFP_NORETRY"),
    (COMP, "GFP_COMP"),
    (ZERO, "GFP_ZERO"),
    (NOMEMALLOC, "GFP_NOMEMALLOC"),
    (MEMALLOC, "GFP_MEMALLOC"),
    (HARDWALL, "GFP_HARDWALL"),
    (THISNODE, "GFP_THISNODE"),
    (RECLAIMABLE, "GFP_RECLAIMABLE"),
    (MOVABLE, "GFP_MOVABLE"),
    (NOTRACK, "GFP_NOTRACK"),
    (NO_KSWAPD, "GFP_NO_KSWAPD"),
    (OTHER_NODE, "GFP_OTHER_NODE"),
];

/// Bits of the old kernels that their table has no name for.
const OLD_BITS: &[(u64, u64)] = &[(DMA, 0x1), (HIGHMEM, 0x2), (DMA32, 0x4), (FS, 0x80)];

/// 4.6 to 6.x, `include/trace/events/mmflags.h`.
const NEW: &[(u64, &str)] = &[
    (TRANSHUGE, "GFP_TRANSHUGE"),
    (TRANSHUGE_LIGHT, "GFP_TRANSHUGE_LIGHT"),
    (HIGHUSER_MOVABLE, "GFP_HIGHUSER_MOVABLE"),
    (HIGHUSER, "GFP_HIGHUSER"),
    (USER, "GFP_USER"),
    (KERNEL | ACCOUNT, "GFP_KERNEL_ACCOUNT"),
    (KERNEL, "GFP_KERNEL"),
    (RECLAIM | IO, "GFP_NOFS"),
    (HIGH | KSWAPD_RECLAIM, "GFP_ATOMIC"),
    (RECLAIM, "GFP_NOIO"),
    (KSWAPD_RECLAIM, "GFP_NOWAIT"),
    (DMA, "GFP_DMA"),
    (HIGHMEM, "__GFP_HIGHMEM"),
    (DMA32, "GFP_DMA32"),
    (HIGH, "__GFP_HIGH"),
    (ATOMIC, "__GFP_ATOMIC"),
    (IO, "__GFP_IO"),
    (FS, "__GFP_FS"),
    (COLD, "__GFP_COLD"),
    (NOWARN, "__GFP_NOWARN"),
    (RETRY_MAYFAIL, "__GFP_RETRY_MAYFAIL"),
    (NOFAIL, "__GFP_NOFAIL"),
    (NORETRY, "__GFP_NORETRY"),
    (COMP, "__GFP_COMP"),
    (ZERO, "__GFP_ZERO"),
    (NOMEMALLOC, "__GFP_NOMEMALLOC"),
    (MEMALLOC, "__GFP_MEMALLOC"),
    (HARDWALL, "__GFP_HARDWALL"),
    (THISNODE, "__GFP_THISNODE"),
    (RECLAIMABLE, "__GFP_RECLAIMABLE"),
    (MOVABLE, "__GFP_MOVABLE"),
    (ACCOUNT, "__GFP_ACCOUNT"),
    (NOTRACK, "__GFP_NOTRACK"),
    (WRITE, "__GFP_WRITE"),
    (DIRECT_RECLAIM, "__GFP_DIRECT_RECLAIM"),
    (OTHER_NODE, "__GFP_OTHER_NODE"),
    (ZEROTAGS, "__GFP_ZEROTAGS"),
    (SKIP_ZERO, "__GFP_SKIP_ZERO"),
    (SKIP_KASAN, "__GFP_SKIP_KASAN"),
    (NOLOCKDEP, "__GFP_NOLOCKDEP"),
];

/// 6.18: singles in the order of their bits, `GFP_NOWAIT` with `__GFP_NOWARN`.
const NEWEST: &[(u64, &str)] = &[
    (TRANSHUGE, "GFP_TRANSHUGE"),
    (TRANSHUGE_LIGHT, "GFP_TRANSHUGE_LIGHT"),
    (HIGHUSER_MOVABLE, "GFP_HIGHUSER_MOVABLE"),
    (HIGHUSER, "GFP_HIGHUSER"),
    (USER, "GFP_USER"),
    (KERNEL | ACCOUNT, "GFP_KERNEL_ACCOUNT"),
    (KERNEL, "GFP_KERNEL"),
    (RECLAIM | IO, "GFP_NOFS"),
    (HIGH | KSWAPD_RECLAIM, "GFP_ATOMIC"),
    (RECLAIM, "GFP_NOIO"),
    (KSWAPD_RECLAIM | NOWARN, "GFP_NOWAIT"),
    (DMA, "GFP_DMA"),
    (DMA32, "GFP_DMA32"),
    (HIGHMEM, "__GFP_HIGHMEM"),
    (MOVABLE, "__GFP_MOVABLE"),
    (RECLAIMABLE, "__GFP_RECLAIMABLE"),
    (HIGH, "__GFP_HIGH"),
    (IO, "__GFP_IO"),
    (FS, "__GFP_FS"),
    (ZERO, "__GFP_ZERO"),
    (DIRECT_RECLAIM, "__GFP_DIRECT_RECLAIM"),
    (KSWAPD_RECLAIM, "__GFP_KSWAPD_RECLAIM"),
    (WRITE, "__GFP_WRITE"),
    (NOWARN, "__GFP_NOWARN"),
    (RETRY_MAYFAIL, "__GFP_RETRY_MAYFAIL"),
    (NOFAIL, "__GFP_NOFAIL"),
    (NORETRY, "__GFP_NORETRY"),
    (MEMALLOC, "__GFP_MEMALLOC"),
    (COMP, "__GFP_COMP"),
    (NOMEMALLOC, "__GFP_NOMEMALLOC"),
    (HARDWALL, "__GFP_HARDWALL"),
    (THISNODE, "__GFP_THISNODE"),
    (ACCOUNT, "__GFP_ACCOUNT"),
    (ZEROTAGS, "__GFP_ZEROTAGS"),
    (NO_OBJ_EXT, "__GFP_NO_OBJ_EXT"),
];

/// The names of an era in the order in which they are tried, and what an empty set is called.
fn names(release: Release) -> (&'static [(u64, &'static str)], &'static str) {
    if release < Release::new(4, 6) {
        (OLD, "GFP_NOWAIT")
    } else if release < Release::new(6, 18) {
        (NEW, "none")
    } else {
        (NEWEST, "none")
    }
}

/// The flags that have a name in some era, as those of `release` are kept.
fn named_in(set: u64, release: Release) -> u64 {
    let named = set & ((1 << UNNAMED_SHIFT) - 1);
    match (release < Release::new(4, 6), named & KSWAPD_RECLAIM) {
        (false, _) => named,
        (true, 0) => named | NO_KSWAPD,
        (true, _) => named & !KSWAPD_RECLAIM,
    }
}

/// Bits of the kernel that its names leave over and prints as a number.
fn number_bits(release: Release) -> &'static [(u64, u64)] {
    if release < Release::new(4, 6) {
        OLD_BITS
    } else {
        &[]
    }
}

/// Sets of flags in a binary record: numbers that `__print_flags` writes as [`render`] does.
///
/// The kernel's own bits are not known where only text was read. Flags with a name get bits from
/// [`Recorded::SHIFT`] on, except those that an era prints as a number: those, and what had no name, are what
/// the kernel's number says.
#[derive(Debug, Clone)]
pub struct Recorded {
    release: Release,
    /// Names in the order in which they are tried.
    pub names: Vec<(u64, String)>,
    /// What an empty set is called.
    pub none: &'static str,
}

impl Recorded {
    /// First bit of flags with a name; all bits of the kernel's are below.
    const SHIFT: u32 = 28;

    /// The numbers and names of a release.
    pub fn new(release: Release) -> Recorded {
        let (table, none) = names(release);
        let own = table.iter().map(|&(bits, name)| (bits, name.to_owned()));
        let foreign = NAMES.iter().filter(|(_, flag)| {
            let numbered = number_bits(release).iter().any(|(known, _)| known == flag);
            !numbered && !table.iter().any(|(bits, _)| bits == flag)
        });
        let foreign = foreign.map(|&(name, flag)| (flag, format!("__GFP_{name}")));
        Recorded {
            release,
            names: own
                .chain(foreign)
                .map(|(bits, name)| (Recorded::bits(bits, release), name))
                .collect(),
            none,
        }
    }

    /// The number of a set.
    pub fn number(&self, set: u64) -> u64 {
        let named = named_in(set, self.release);
        let number = set >> UNNAMED_SHIFT & ((1 << Recorded::SHIFT) - 1);
        Recorded::bits(named, self.release) | number
    }

    fn bits(named: u64, release: Release) -> u64 {
        let (mut named, mut bits) = (named, 0);
        for &(flag, bit) in number_bits(release) {
            if named & flag != 0 {
                named &= !flag;
                bits |= bit;
            }
        }
        bits | named << Recorded::SHIFT
    }
}

/// Writes a set of flags as a kernel of `release` prints it.
pub fn render(set: u64, release: Release, out: &mut Vec<u8>) {
    let mut rest = named_in(set, release);
    let mut number = set >> UNNAMED_SHIFT;
    let (table, none) = names(release);
    if rest == 0 && number == 0 {
        out.extend_from_slice(none.as_bytes());
        return;
    }
    let mut bar = "";
    for &(bits, name) in table {
        if rest & bits == bits {
            rest &= !bits;
            out.extend_from_slice(bar.as_bytes());
            out.extend_from_slice(name.as_bytes());
            bar = "|";
        }
    }
    for &(flag, bit) in number_bits(release) {
        if rest & flag != 0 {
            rest &= !flag;
            number |= bit;
        }
    }
    // A flag of another era: no kernel of this one prints it, but it is not lost.
    for &(name, bits) in NAMES {
        if rest & bits != 0 {
            rest &= !bits;
            let _ = write!(out, "{bar}__GFP_{name}");
            bar = "|";
        }
    }
    if number != 0 {
        // Writing to a vector cannot fail.
        let _ = write!(out, "{bar}0x{number:x}");
    }
}

//! What needs `unsafe`: memory that the workload touches, state that processes share, fork and the ends of
//! children.
//!
//! Every function here is safe to call: lengths and offsets are checked, and a mapping keeps its addresses
//! until the last reference to it is gone, so that a thread which touches what another has unmapped dies
//! of SIGSEGV, as it would in C, and never touches anything else.

#![allow(
    unsafe_code,
    reason = "the one module that maps memory and forks; every block says why it is sound"
)]

use lowmark_spec::machine::PAGE_SIZE;
use lowmark_spec::workload::{Advice, Range};
use rustix::mm::{self, MapFlags, MlockAllFlags, MlockFlags, ProtFlags};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A huge page of x86-64, which guests are.
pub(super) const HUGE_PAGE: u64 = 2 << 20;

/// What a mapping is made of.
#[derive(Debug)]
pub(super) enum Backing<'a> {
    AnonPrivate,
    AnonShared,
    FileShared(&'a File, u64),
    FilePrivate(&'a File, u64),
}

/// A mapping of whole pages. Dropping the last reference gives back its addresses.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    length: u64,
}

// SAFETY: the mapping is plain memory that is only accessed by volatile loads and stores of single bytes
// or through system calls; races between threads are races of the workload on bytes that nothing relies on.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// mmap(2) of `length` bytes, rounded up to pages. One of 2 MiB or more begins where a huge page can, so that what a
    /// workload does at a multiple of `HPAGE` is done to whole ones. With `exec` its pages may be executed, which no
    /// workload does.
    pub(super) fn new(backing: &Backing<'_>, length: u64, exec: bool) -> io::Result<Mapping> {
        let length = length.next_multiple_of(PAGE_SIZE);
        let aligned = length >= HUGE_PAGE;
        let room = length + if aligned { HUGE_PAGE - PAGE_SIZE } else { 0 };
        let bytes = |length: u64| usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory);
        let (bytes, room) = (bytes(length)?, bytes(room)?);
        let reserved = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: no address is asked for, so nothing that exists is replaced.
        let start =
            unsafe { mm::mmap_anonymous(ptr::null_mut(), room, ProtFlags::empty(), reserved)? }
                .cast::<u8>();
        let head = if aligned {
            start.align_offset(HUGE_PAGE as usize)
        } else {
            0
        };
        let base = start.wrapping_add(head);
        // Gives back what is reserved of these bytes.
        let give_back = |start: *mut u8, bytes: usize| {
            if bytes > 0 {
                // SAFETY: nobody uses what was reserved above and is no part of the mapping.
                let _ = unsafe { mm::munmap(start.cast(), bytes) };
            }
        };
        let mut prot = ProtFlags::READ | ProtFlags::WRITE;
        prot.set(ProtFlags::EXEC, exec);
        let map = |flags: MapFlags, file: Option<(&File, u64)>| {
            let flags = flags | MapFlags::FIXED;
            // SAFETY: replaces what was reserved above; files are only ever touched through volatile accesses, so it
            // does not matter who else changes them.
            unsafe {
                match file {
                    None => mm::mmap_anonymous(base.cast(), bytes, prot, flags),
                    Some((file, offset)) => mm::mmap(base.cast(), bytes, prot, flags, file, offset),
                }
            }
        };
        let mapped = match backing {
            Backing::AnonPrivate => map(MapFlags::PRIVATE, None),
            Backing::AnonShared => map(MapFlags::SHARED, None),
            Backing::FileShared(file, offset) => map(MapFlags::SHARED, Some((file, *offset))),
            Backing::FilePrivate(file, offset) => map(MapFlags::PRIVATE, Some((file, *offset))),
        };
        if let Err(error) = mapped {
            give_back(start, room);
            return Err(error.into());
        }
        give_back(start, head);
        give_back(base.wrapping_add(bytes), room - head - bytes);
        let base = NonNull::new(base).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { base, length })
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The address of a byte.
    #[inline]
    fn at(&self, offset: u64) -> *mut u8 {
        assert!(offset < self.length, "the offset is inside the mapping");
        // SAFETY: below `length`, so inside the mapping, which is never larger than isize::MAX.
        unsafe { self.base.as_ptr().add(offset as usize) }
    }

    /// Address and length of a range, cut to the mapping and widened to whole pages.
    fn pages(&self, range: Range) -> Option<(*mut c_void, usize)> {
        let start = range.offset / PAGE_SIZE * PAGE_SIZE;
        let end = range.offset.saturating_add(range.length).min(self.length);
        let end = end.next_multiple_of(PAGE_SIZE);
        (start < end).then(|| (self.at(start).cast(), (end - start) as usize))
    }

    /// A load of one byte.
    #[inline]
    pub(super) fn load(&self, offset: u64) -> u8 {
        // SAFETY: `at` gives an address inside the mapping.
        unsafe { self.at(offset).read_volatile() }
    }

    /// A store of one byte.
    #[inline]
    pub(super) fn store(&self, offset: u64, value: u8) {
        // SAFETY: `at` gives an address inside the mapping.
        unsafe { self.at(offset).write_volatile(value) }
    }

    /// Stores to every byte of a range.
    pub(super) fn fill(&self, offset: u64, length: u64, value: u8) {
        let length = length.min(self.length.saturating_sub(offset));
        if length > 0 {
            // SAFETY: the range is inside the mapping, which no reference of Rust points into.
            unsafe { ptr::write_bytes(self.at(offset), value, length as usize) }
        }
    }

    /// munmap(2) of a range: its pages go, touching it is SIGSEGV. The addresses stay taken.
    pub(super) fn unmap(&self, range: Range) -> io::Result<()> {
        let Some((address, length)) = self.pages(range) else {
            return Ok(());
        };
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: replaces pages of this mapping only, and no reference of Rust points into them.
        unsafe { mm::mmap_anonymous(address, length, ProtFlags::empty(), flags) }?;
        Ok(())
    }

    /// madvise(2).
    pub(super) fn advise(&self, advice: Advice, range: Range) -> io::Result<()> {
        let Some((address, length)) = self.pages(range) else {
            return Ok(());
        };
        let advice = match advice {
            Advice::Normal => libc::MADV_NORMAL,
            Advice::Random => libc::MADV_RANDOM,
            Advice::Sequential => libc::MADV_SEQUENTIAL,
            Advice::Willneed => libc::MADV_WILLNEED,
            Advice::Dontneed => libc::MADV_DONTNEED,
            Advice::Hugepage => libc::MADV_HUGEPAGE,
            Advice::Nohugepage => libc::MADV_NOHUGEPAGE,
            Advice::Cold => libc::MADV_COLD,
            Advice::Pageout => libc::MADV_PAGEOUT,
            Advice::Free => libc::MADV_FREE,
            Advice::Populate => libc::MADV_POPULATE_WRITE,
            Advice::PopulateRead => libc::MADV_POPULATE_READ,
        };
        // SAFETY: pages of this mapping; what the advice changes is their content at most, which nothing
        // relies on.
        check(unsafe { libc::madvise(address, length, advice) })
    }

    /// MADV_REMOVE: a hole in what a shared mapping shows.
    pub(super) fn remove(&self, range: Range) -> io::Result<()> {
        let Some((address, length)) = self.pages(range) else {
            return Ok(());
        };
        // SAFETY: as for `advise`.
        check(unsafe { libc::madvise(address, length, libc::MADV_REMOVE) })
    }

    /// mlock(2), or munlock(2).
    pub(super) fn lock(&self, lock: bool, range: Range) -> io::Result<()> {
        let Some((address, length)) = self.pages(range) else {
            return Ok(());
        };
        // SAFETY: pages of this mapping, which exists as long as `self`.
        Ok(unsafe {
            if lock {
                mm::mlock(address, length)
            } else {
                mm::munlock(address, length)
            }
        }?)
    }

    /// mincore(2) of one page.
    pub(super) fn resident(&self, offset: u64) -> io::Result<bool> {
        let address = self.at(offset / PAGE_SIZE * PAGE_SIZE);
        let mut answer = 0u8;
        // SAFETY: one page of this mapping, and room for its one byte of answer.
        check(unsafe { libc::mincore(address.cast(), PAGE_SIZE as usize, &raw mut answer) })?;
        Ok(answer & 1 != 0)
    }

    /// Number of the page in its address space, for `/proc/self/pagemap`.
    pub(super) fn virtual_page(&self, offset: u64) -> u64 {
        self.at(offset).addr() as u64 / PAGE_SIZE
    }

    /// The mapping as a buffer for reads and writes.
    pub(super) fn as_buffer(&mut self) -> &mut [u8] {
        // SAFETY: `&mut self` is the only reference to this mapping, and its pages are initialised: the
        // kernel gives zeroes.
        unsafe { slice::from_raw_parts_mut(self.base.as_ptr(), self.length as usize) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the last reference, so nobody touches these addresses any more. It cannot fail for a
        // range that was mapped as a whole.
        let _ = unsafe { mm::munmap(self.base.as_ptr().cast(), self.length as usize) };
    }
}

fn check(result: i32) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Anonymous shared memory for `count` values of `T`, all bits zero, for the rest of the program's life
/// and that of the processes it forks. Pinned as it is used, if that is allowed, so that it is no load.
fn shared_region<T>(count: usize) -> io::Result<*mut T> {
    let bytes = count.max(1).saturating_mul(size_of::<T>());
    let prot = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::SHARED | MapFlags::NORESERVE;
    // SAFETY: no address is asked for, so nothing that exists is replaced.
    let base = unsafe { mm::mmap_anonymous(ptr::null_mut(), bytes, prot, flags) }?;
    // SAFETY: the region just mapped. A limit on locked memory is no reason not to run.
    let _ = unsafe { mm::mlock_with(base, bytes, MlockFlags::ONFAULT) };
    Ok(base.cast())
}

/// Shared words on which processes can wait.
pub(super) fn shared_words(count: usize) -> io::Result<&'static [AtomicU32]> {
    let base = shared_region::<AtomicU32>(count)?;
    // SAFETY: page-aligned, zeroed, of this length and never unmapped.
    Ok(unsafe { slice::from_raw_parts(base, count) })
}

/// Shared numbers.
pub(super) fn shared_numbers(count: usize) -> io::Result<&'static [AtomicU64]> {
    let base = shared_region::<AtomicU64>(count)?;
    // SAFETY: page-aligned, zeroed, of this length and never unmapped.
    Ok(unsafe { slice::from_raw_parts(base, count) })
}

/// Which side of a fork this is.
pub(super) enum Fork {
    Child,
    Parent(i32),
}

/// fork(2).
///
/// # Errors
///
/// Also if the process has more than one thread: what the others hold would stay locked in the child.
pub(super) fn fork() -> io::Result<Fork> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("fork needs a process with one thread"));
    }
    // SAFETY: there is one thread, so the child is a whole copy of the program.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            set_child_ends(libc::SIG_UNBLOCK)?;
            Ok(Fork::Child)
        }
        pid => Ok(Fork::Parent(pid)),
    }
}

/// Blocks or unblocks the signal that says that a child has ended.
fn set_child_ends(how: i32) -> io::Result<libc::sigset_t> {
    // SAFETY: all bits zero is a valid set of signals.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to this set, which outlives the calls.
    let result = unsafe {
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::pthread_sigmask(how, &raw const set, ptr::null_mut())
    };
    match result {
        0 => Ok(set),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Can be read when children have ended: signalfd(2) with SIGCHLD, which the process does not get in any
/// other way from now on. Children do not inherit that.
#[derive(Debug)]
pub(super) struct ChildEnds(OwnedFd);

impl ChildEnds {
    pub(super) fn new() -> io::Result<ChildEnds> {
        let set = set_child_ends(libc::SIG_BLOCK)?;
        // SAFETY: the set outlives the call.
        let handle =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        check(handle)?;
        // SAFETY: the kernel has just given this descriptor, and nobody else has it.
        Ok(ChildEnds(unsafe { OwnedFd::from_raw_fd(handle) }))
    }

    /// Takes what was said so far, so that only later ends make it readable.
    pub(super) fn take(&self) -> io::Result<()> {
        let mut told = [0; size_of::<libc::signalfd_siginfo>()];
        loop {
            match rustix::io::read(&self.0, &mut told) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for ChildEnds {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Pins this process's own memory as it is used, also what it maps later.
///
/// # Errors
///
/// Without the right to, and on a kernel before 4.4, which can only pin pages at once. It does not move pinned pages either,
/// so that those of many processes would be in the way of huge pages: only PID 1 is pinned there ([`pin_mapped`]).
pub(crate) fn pin_memory() -> io::Result<()> {
    let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    Ok(mm::mlockall(flags)?)
}

/// Pins what this process has mapped, at once.
pub(crate) fn pin_mapped() -> io::Result<()> {
    Ok(mm::mlockall(MlockAllFlags::CURRENT)?)
}

/// CPU times and faults.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    pub(super) user_ns: u64,
    pub(super) system_ns: u64,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
}

impl Usage {
    fn of(usage: &libc::rusage) -> Usage {
        let time = |time: libc::timeval| {
            time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1_000
        };
        Usage {
            user_ns: time(usage.ru_utime),
            system_ns: time(usage.ru_stime),
            minor_faults: usage.ru_minflt.unsigned_abs(),
            major_faults: usage.ru_majflt.unsigned_abs(),
        }
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    /// Exit code, if it exited.
    pub(super) code: Option<i32>,
    /// Signal that killed it.
    pub(super) signal: Option<i32>,
    pub(super) usage: Usage,
}

/// wait4(2) of a child, without waiting; none if it still runs.
pub(super) fn reap(pid: i32) -> io::Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: all bits zero is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to places of the right type that outlive the call.
    let found = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) };
    match found {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ => Ok(Some(Ended {
            code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
            usage: Usage::of(&usage),
        })),
    }
}

/// getrusage(2) of the calling thread.
pub(super) fn thread_usage() -> Usage {
    // SAFETY: all bits zero is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a place of the right type; with these arguments the call cannot fail.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    Usage::of(&usage)
}

/// set_mempolicy(2): prefer a node.
pub(super) fn prefer_node(node: u32) -> io::Result<()> {
    const MPOL_PREFERRED: libc::c_long = 1;
    let mask = 1u64.checked_shl(node).ok_or(io::ErrorKind::InvalidInput)?;
    let bits: libc::c_ulong = 64;
    // SAFETY: the mask is one word and `bits` says so.
    let result = unsafe {
        libc::syscall(
            libc::SYS_set_mempolicy,
            MPOL_PREFERRED,
            &raw const mask,
            bits + 1,
        )
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// sync_file_range(2): write out a range and wait for it.
pub(super) fn sync_file_range(file: &File, range: Range) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let offset = i64::try_from(range.offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    let length = i64::try_from(range.length).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: a system call on an open file, without pointers.
    check(unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, flags) })
}

/// swapon(2), for PID 1 of a guest. A priority below zero is left to the kernel.
pub(crate) fn swapon(device: &std::ffi::CStr, priority: i32) -> io::Result<()> {
    // include/linux/swap.h
    const SWAP_FLAG_PREFER: i32 = 0x8000;
    const SWAP_FLAG_PRIO_MASK: i32 = 0x7fff;
    let flags = match priority {
        0.. => SWAP_FLAG_PREFER | (priority & SWAP_FLAG_PRIO_MASK),
        _ => 0,
    };
    // SAFETY: the path is a C string that outlives the call.
    check(unsafe { libc::swapon(device.as_ptr(), flags) })
}

/// swapoff(2).
pub(crate) fn swapoff(device: &std::ffi::CStr) -> io::Result<()> {
    // SAFETY: the path is a C string that outlives the call.
    check(unsafe { libc::swapoff(device.as_ptr()) })
}

/// Lets a program be killed when the thread that starts it dies.
pub(crate) fn die_with_parent(command: &mut Command) {
    let set = || {
        let signal = Some(rustix::process::Signal::KILL);
        Ok(rustix::process::set_parent_process_death_signal(signal)?)
    };
    // SAFETY: between fork and exec only a system call is made, and nothing is allocated.
    unsafe { command.pre_exec(set) };
}

/// Keeps a program and all that it starts from getting transparent huge pages (PR_SET_THP_DISABLE, 3.15).
pub(crate) fn without_huge_pages(command: &mut Command) {
    // A kernel without them needs no such setting.
    let set = || {
        let _ = rustix::thread::disable_transparent_huge_pages(true);
        Ok(())
    };
    // SAFETY: between fork and exec only a system call is made, and nothing is allocated.
    unsafe { command.pre_exec(set) };
}

/// Loads a kernel module from its plain ELF bytes, for PID 1 of a guest.
pub(crate) fn init_module(image: &[u8]) -> io::Result<()> {
    Ok(rustix::system::init_module(image, c"")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_keeps_what_is_stored() {
        let mapping =
            Mapping::new(&Backing::AnonPrivate, 5 * PAGE_SIZE - 1, false).expect("memory");
        assert_eq!(mapping.length(), 5 * PAGE_SIZE);
        assert_eq!(mapping.load(4096), 0);
        mapping.store(4096, 7);
        assert!(mapping.resident(4096).expect("mincore"));
        assert!(!mapping.resident(3 * PAGE_SIZE).expect("mincore"));
        mapping.fill(2 * PAGE_SIZE, 100 * PAGE_SIZE, 9);
        assert_eq!(
            (mapping.load(4096), mapping.load(5 * PAGE_SIZE - 1)),
            (7, 9)
        );
        let range = Range {
            offset: 4096,
            length: 1,
        };
        mapping.advise(Advice::Dontneed, range).expect("madvise");
        assert_eq!((mapping.load(4096), mapping.load(8192)), (0, 9));
        mapping.unmap(range).expect("mmap");
        assert_eq!(mapping.load(8192), 9);
    }

    #[test]
    fn a_large_mapping_begins_at_a_huge_page() {
        let length = 5 * HUGE_PAGE + PAGE_SIZE;
        let mappings: Vec<Mapping> = (0..5)
            .map(|_| Mapping::new(&Backing::AnonPrivate, length, false).expect("memory"))
            .collect();
        for mapping in &mappings {
            assert_eq!(mapping.length(), length);
            assert!(
                mapping
                    .virtual_page(0)
                    .is_multiple_of(HUGE_PAGE / PAGE_SIZE)
            );
            mapping.store(0, 1);
            mapping.store(length - 1, 1);
        }
        let small = Mapping::new(&Backing::AnonShared, PAGE_SIZE, false).expect("memory");
        small.store(0, 1);
    }

    #[test]
    #[should_panic(expected = "inside the mapping")]
    fn nothing_outside_is_touched() {
        let mapping = Mapping::new(&Backing::AnonShared, PAGE_SIZE, false).expect("memory");
        mapping.store(PAGE_SIZE, 1);
    }
}

//! Metadata of ext3 and ext4: what is read of it and when, what a journal holds and writes, and every invariant while loads
//! of many files run beside memory that is short.

use crate::common::{checked, refuse_writes, with_metadata as scenario};
use lowmark_record::Recording;
use lowmark_spec::machine::PAGE_SIZE;

fn record(kernel: &str, ram: &str, mount: &str, body: &str, check_every: u64) -> Recording {
    checked(&scenario(kernel, ram, mount, body), check_every)
}

const EXT3: &str = "kind = \"ext3\"";
const EXT4: &str = "kind = \"ext4\"";

/// Four directories with 80 files each.
const SMALL: &str = "[fileset.small]\ndirectories = 4\nfiles = 80\nsize = \"4K\"\nexists = true\n";

/// Blocks that are read while a task does these statements.
fn blocks_read(mount: &str, statements: &str) -> u64 {
    let body = format!("{SMALL}[task.main]\nrun = [{statements}]\n");
    record("v4.2", "64M", mount, &body, 1).counters["pgpgin"] / 4
}

/// Eleven inodes are reserved, and each directory takes one before its files: numbers 11 to 334 are in 21 blocks of 16. Each of
/// the four directories is a block. On ext4 each directory has a group of its own, of whose table up to 32 blocks are read
/// together, where six are in use.
#[test]
fn names_and_inodes_are_read_once() {
    let walk = "{ stat_walk = \"small\" }";
    assert_eq!(blocks_read(EXT3, walk), 4 + 21);
    assert_eq!(blocks_read(EXT3, &format!("{walk}, {walk}")), 4 + 21);
    // What has left the caches of dentries and inodes is found in the page cache.
    let drop = |what: &str| {
        what.split(' ')
            .map(|what| format!("{{ drop_caches = {what} }}, "))
            .collect::<String>()
    };
    let after = |what: &str| blocks_read(EXT3, &format!("{walk}, {}{walk}", drop(what)));
    assert_eq!(after("2 2 2"), 4 + 21);
    assert_eq!(after("1"), 4 + 21, "nothing is asked for again");
    assert_eq!(after("2 2 2 1"), 2 * (4 + 21));
    let ext4 = blocks_read(EXT4, walk);
    assert!((4 + 4 * 24..=4 + 4 * 32).contains(&ext4), "{ext4}");
}

/// What a machine has in memory by `buffers` is not read.
#[test]
fn what_is_in_memory_from_the_beginning_is_not_read() {
    for (buffers, expected) in [(0, 4 + 21), (10, 4 + 21 - 10), (100, 0)] {
        let body = format!("{SMALL}[task.main]\nrun = [{{ stat_walk = \"small\" }}]\n");
        let mut scenario = scenario("v3.4", "64M", EXT3, &body);
        scenario.machine.occupied = 8 << 20;
        scenario.machine.buffers = buffers * PAGE_SIZE;
        let recording = checked(&scenario, 1);
        let read = recording.counters["pgpgin"] / 4;
        // Beside these blocks there are bitmaps and the like, which nobody reads here.
        assert!(
            (expected..=expected + 6).contains(&read),
            "{buffers}: {read}"
        );
    }
}

/// Pages in the page cache when a task has made ten files with nothing in them, waited, and dropped what can be dropped.
fn left_of_new_files(kernel: &str, wait: &str) -> u64 {
    let body = format!(
        "[fileset.new]\ndirectories = 1\nfiles = 10\nsize = \"4K\"\nexists = false\n[task.main]\n\
         run = [{{ repeat = 10, do = [{{ create = \"new\" }}] }}, {{ sleep = \"{wait}\" }}, {{ drop_caches = 1 }}]\n"
    );
    let recording = record(kernel, "64M", EXT3, &body, 1);
    recording.state["nr_file_pages"]
}

/// Two blocks of the inode table, the directory, both bitmaps and the descriptors: the transaction holds them. Committed, they
/// are dirty until the flusher comes, half a minute later.
#[test]
fn a_transaction_holds_what_it_has_changed() {
    for kernel in ["v2.6.36", "v3.4"] {
        assert_eq!(left_of_new_files(kernel, "1s"), 6, "{kernel}");
        assert_eq!(left_of_new_files(kernel, "20s"), 6, "{kernel}");
        assert_eq!(left_of_new_files(kernel, "60s"), 0, "{kernel}");
    }
}

/// fsync(2) of a new file of one page: its data, and with metadata a descriptor block, five blocks that have changed, and a
/// commit record. The second fsync(2) finds nothing to be committed.
#[test]
fn fsync_commits_the_transaction_of_its_file() {
    let written = |calls: usize| {
        let calls = vec!["{ fsync = \"out\" }"; calls].join(", ");
        let body = format!(
            "[file.out]\nexists = false\n[task.main]\nrun = [{{ append = \"out\", block = \"4K\", count = 1 }}, {calls}]\n"
        );
        record("v6.1", "64M", EXT4, &body, 1).counters["pgpgout"] / 4
    };
    let once = written(1);
    assert!((1 + 1 + 5 + 1..=1 + 1 + 8 + 1).contains(&once), "{once}");
    assert_eq!(written(2), once);
}

/// Reading a file for the first time since it was written to changes its inode, unless the file system is mounted so that it
/// does not; reading it again changes nothing.
#[test]
fn the_first_read_of_a_file_changes_its_inode() {
    let committed = |atime: &str, passes: u32| {
        let mount = format!("{EXT3}\natime = \"{atime}\"");
        let reads = vec!["{ read = \"one\" }, { sleep = \"8s\" }"; passes as usize].join(", ");
        let body = format!("[file.one]\nsize = \"4K\"\n[task.main]\nrun = [{reads}]\n");
        record("v3.4", "64M", &mount, &body, 1).counters["pgpgout"] / 4
    };
    // A descriptor block, the block of the inode, a commit record.
    assert_eq!(committed("relatime", 1), 3);
    assert_eq!(committed("relatime", 2), 3);
    assert_eq!(committed("noatime", 2), 0);
}

/// Many files are made, read, written to, synced and removed beside memory that is short, by eras and file systems, with disks
/// that are well and such that refuse writes. Everything else is what the invariants say.
#[test]
fn loads_of_many_files_keep_what_is_to_be_kept() {
    let body = include_str!("common/many-files.toml");
    for (kernel, mount) in [
        ("v2.6.36", EXT3),
        ("v3.4,model.page_tables=on,model.slab_pages=on", EXT3),
        ("v3.4", EXT4),
        ("v4.12", EXT4),
        ("v6.1", EXT4),
        ("v6.18,model.slab_pages=on", EXT4),
    ] {
        let healthy = scenario(kernel, "16M", mount, body);
        checked(&healthy, 7);
        let mut failing = healthy;
        refuse_writes(&mut failing);
        checked(&failing, 13);
    }
}

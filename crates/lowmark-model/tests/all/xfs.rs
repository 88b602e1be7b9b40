//! Metadata of XFS: what is read of it and when, what goes into the log and to its place, who waits for inodes that are freed, and
//! every invariant while loads of many files run beside memory that is short.

use crate::common::{checked, refuse_writes, with_metadata as scenario};
use lowmark_record::Recording;
use lowmark_spec::machine::PAGE_SIZE;

/// Fields of an XFS that is mounted as `mount` says.
fn on_xfs(mount: &str) -> String {
    format!("kind = \"xfs\"\n{mount}")
}

fn record(kernel: &str, mount: &str, body: &str) -> Recording {
    checked(&scenario(kernel, "64M", &on_xfs(mount), body), 1)
}

fn pages(recording: &Recording, counter: &str) -> u64 {
    recording.counters[counter] * 1024 / PAGE_SIZE
}

const NOATIME: &str = "atime = \"noatime\"";

/// Four directories with 80 files each, and what a task does with them.
fn with_small(statements: &str) -> String {
    format!(
        "[fileset.small]\ndirectories = 4\nfiles = 80\nsize = \"4K\"\nexists = true\n[task.main]\nrun = [{statements}]\n"
    )
}

/// A directory is a block, and has an inode of the first of two chunks of 64. Its 80 files are in three clusters of 32,
/// each of two pages or, with checksums (since 2015), of four.
#[test]
fn names_and_inodes_are_read_once() {
    let read = |kernel: &str, statements: &str| {
        pages(&record(kernel, NOATIME, &with_small(statements)), "pgpgin")
    };
    let walk = "{ stat_walk = \"small\" }";
    for (kernel, cluster) in [("v3.4", 2), ("v4.11", 4), ("v6.1", 4)] {
        let expected = 4 * (1 + 3 * cluster);
        assert_eq!(read(kernel, walk), expected, "{kernel}");
        assert_eq!(
            read(kernel, &format!("{walk}, {walk}")),
            expected,
            "{kernel}"
        );
    }
}

/// Buffers that nobody has used for some rounds of the shrinker are freed, and read again.
#[test]
fn the_shrinker_frees_buffers() {
    let walk = "{ stat_walk = \"small\" }";
    let drop = ["{ drop_caches = 2 }"; 8].join(", ");
    let body = with_small(&format!(
        "{walk}, {drop}, {{ sleep = \"6s\" }}, {drop}, {walk}"
    ));
    let recording = record("v6.1", NOATIME, &body);
    assert_eq!(pages(&recording, "pgpgin"), 2 * 4 * (1 + 3 * 4));
}

/// XFS's shrinker is to spare a cluster of inodes and a block of a directory twice. To 4.16 it counted down as it took a buffer off its
/// list, and freed the buffer at the second look; from 4.17 on it counts down to zero first, and frees the buffer at the third look.
/// There are so few buffers that each call of drop_caches looks at each of them once.
#[test]
fn from_4_17_on_a_buffer_is_spared_once_more() {
    let read = |kernel: &str, rounds: usize| {
        let walk = "{ stat_walk = \"few\" }";
        let drop = vec!["{ drop_caches = 2 }, { sleep = \"6s\" }"; rounds].join(", ");
        let body = format!(
            "[fileset.few]\ndirectories = 1\nfiles = 2\nsize = \"4K\"\nexists = true\n[task.main]\nrun = [{walk}, {drop}, {walk}]\n"
        );
        pages(&record(kernel, NOATIME, &body), "pgpgin")
    };
    let once = 1 + 4;
    for (kernel, rounds) in [("v4.16", 2), ("v4.17+xfs_isolate=spared", 2), ("v4.17", 3)] {
        assert_eq!(read(kernel, rounds - 1), once, "{kernel}");
        assert_eq!(read(kernel, rounds), 2 * once, "{kernel}");
    }
}

/// XFS's shrinker looks again and again at buffers that have changed, and takes them off its list; their changes hold them in memory. When
/// xfsaild has written the buffers, within 65 s, nothing holds them any more and they are freed, without another look of the shrinker.
#[test]
fn what_the_shrinker_has_taken_off_its_list_goes_when_it_is_written() {
    let create = "{ repeat = 3, do = [{ create = \"new\" }] }";
    let read = |then: &str| {
        let body = with_new(&format!("{create}, {then}, {{ stat_walk = \"new\" }}"));
        pages(&record("v6.1", NOATIME, &body), "pgpgin")
    };
    let drops = ["{ drop_caches = 2 }"; 8].join(", ");
    let made = read("{ sleep = \"65s\" }");
    assert_eq!(read(&drops), made);
    assert!(read(&format!("{drops}, {{ sleep = \"65s\" }}")) > made);
}

/// Ten files in a directory. Both change inodes of one cluster, the headers and trees of a group, and the directory.
fn with_new(statements: &str) -> String {
    format!(
        "[fileset.new]\ndirectories = 1\nfiles = 10\nsize = \"4K\"\nexists = false\n[task.main]\nrun = [{statements}]\n"
    )
}

/// What is made is in the log after 30 s, in one or two pages, and at its place half a minute later at most: the headers, two trees of
/// free space, one or two of inodes, a directory, and two clusters.
#[test]
fn what_has_changed_is_logged_and_written_to_its_place() {
    let create = "{ repeat = 10, do = [{ create = \"new\" }] }";
    for (kernel, buffers) in [
        ("v3.4", 1 + 2 + 1 + 1 + 2 * 2),
        ("v6.1", 1 + 2 + 2 + 1 + 2 * 4),
    ] {
        let written = |wait: &str| {
            let body = with_new(&format!("{create}, {{ sleep = \"{wait}\" }}"));
            pages(&record(kernel, NOATIME, &body), "pgpgout")
        };
        assert_eq!(written("29s"), 0, "{kernel}");
        let logged = written("31s");
        assert!((1..=2).contains(&logged), "{kernel}: {logged}");
        assert_eq!(written("65s"), logged + buffers, "{kernel}");
        assert_eq!(written("200s"), logged + buffers, "{kernel}: once");
    }
}

/// fsync(2) of a file that has changed writes its data and a checkpoint; the second one finds nothing in the log's memory.
#[test]
fn fsync_forces_the_log() {
    let written = |calls: usize| {
        let calls = vec!["{ fsync = \"out\" }"; calls].join(", ");
        let body = format!(
            "[file.out]\nexists = false\n[task.main]\nrun = [{{ append = \"out\", block = \"4K\", count = 1 }}, {calls}]\n"
        );
        pages(&record("v6.1", NOATIME, &body), "pgpgout")
    };
    let once = written(1);
    assert!((1 + 1..=1 + 2).contains(&once), "{once}");
    assert_eq!(written(2), once);
}

/// The first read of a file since it was made changes its inode, unless the file system is mounted so that it does not.
#[test]
fn the_first_read_of_a_file_changes_its_inode() {
    let written = |atime: &str| {
        let body = "[file.one]\nsize = \"4K\"\n[task.main]\nrun = [{ read = \"one\" }, { sleep = \"70s\" }]\n";
        pages(
            &record("v6.1", &format!("atime = \"{atime}\""), body),
            "pgpgout",
        )
    };
    // A page of the log, and the cluster of the inode.
    assert_eq!(written("relatime"), 1 + 4);
    assert_eq!(written("noatime"), 0);
}

/// Inodes that have changed and are evicted: from 2.6.39 to 5.8 the task that drops them waits for the log and for their clusters.
/// Before and after it leaves them, and nothing of them is in the log when it ends.
#[test]
fn reclaim_waits_for_changed_inodes_in_its_time() {
    // More than a batch of the shrinker of a file system: to 3.14 it does not scan fewer.
    let body = with_new(
        "{ repeat = 2000, do = [{ create = \"new\" }] }, { drop_caches = 2 }, { drop_caches = 2 }",
    );
    let body = body.replace("files = 10", "files = 2000");
    for (kernel, waits) in [
        ("v2.6.37", false),
        ("v3.4", true),
        ("v4.11", true),
        ("v5.8", true),
        ("v5.9", false),
        ("v6.18", false),
    ] {
        let recording = record(kernel, NOATIME, &body);
        let written = pages(&recording, "pgpgout");
        assert_eq!(written > 0, waits, "{kernel}: {written} pages");
    }
}

/// The switch alone makes the difference.
#[test]
fn waiting_is_a_switch() {
    // Dentries go first, then inodes, then what XFS keeps of them.
    let body = with_new(
        "{ repeat = 10, do = [{ create = \"new\" }] }, { repeat = 5, do = [{ drop_caches = 2 }] }",
    );
    let run = |kernel: &str| record(kernel, NOATIME, &body);
    let (awaited, queued) = (run("v4.11"), run("v4.11+xfs_inodes=queued"));
    assert_eq!(pages(&queued, "pgpgout"), 0);
    assert!(awaited.elapsed_ns > queued.elapsed_ns);
    assert!(pages(&run("v5.9+xfs_inodes=awaited"), "pgpgout") > 0);
}

/// Many files are made, read, written to, synced and removed beside memory that is short, by eras, with disks that are well and
/// such that refuse writes. Everything else is what the invariants say.
#[test]
fn loads_of_many_files_keep_what_is_to_be_kept() {
    let body = include_str!("common/many-files.toml");
    for kernel in [
        "v2.6.36",
        "v3.4,model.page_tables=on,model.slab_pages=on",
        "v4.11",
        "v5.4",
        "v6.1",
        "v6.18,model.slab_pages=on",
    ] {
        let healthy = scenario(kernel, "16M", &on_xfs(""), body);
        checked(&healthy, 7);
        let mut failing = healthy;
        refuse_writes(&mut failing);
        checked(&failing, 13);
    }
}

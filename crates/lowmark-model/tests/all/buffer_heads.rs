//! Buffer heads: which pages have one, and what becomes of them.

use crate::common::{checked, refuse_writes, small, with_metadata};
use lowmark_record::Recording;

const EXT3: &str = "kind = \"ext3\"";
const EXT4: &str = "kind = \"ext4\"";
const XFS: &str = "kind = \"xfs\"";
/// Of a page, which is a slab.
const IN_A_SLAB: u64 = 4096 / 104;

/// Pages of slabs at the end of a run in which buffer heads are the only objects of the kernel.
fn slabs(kernel: &str, ram: &str, mount: &str, statements: &str) -> u64 {
    let body = format!(
        "[file.old]\nsize = \"4M\"\n[file.new]\nsize = \"4M\"\nexists = false\n[task.main]\nrun = [{statements}]\n"
    );
    let kernel = format!("{kernel},model.metadata=off,model.shrinkers=off,model.buffer_heads=on");
    // Half of the slab that a CPU has when the run begins is of objects from before, and its page of `occupied`.
    let recording = checked(&small(&kernel, ram, mount, &body), 1);
    recording.state["nr_slab_reclaimable"]
}

/// A page that is written has a buffer head, one that is read has none.
#[test]
fn pages_that_are_written_have_buffer_heads() {
    let few = |pages: u64| pages.div_ceil(IN_A_SLAB) - 1..=pages.div_ceil(IN_A_SLAB);
    for (kernel, mount) in [
        ("v2.6.36", EXT3),
        ("v4.4", EXT4),
        ("v6.18", EXT4),
        ("v4.18", XFS),
    ] {
        let written = slabs(kernel, "64M", mount, "{ write = \"new\" }");
        assert!(few(1024).contains(&written), "{kernel}: {written}");
        assert_eq!(slabs(kernel, "64M", mount, "{ read = \"old\" }"), 0);
        let mapped = slabs(
            kernel,
            "64M",
            mount,
            "{ map = \"m\", kind = \"file-shared\", file = \"old\" }, { touch = \"m\", access = \"write\", count = 512 }",
        );
        assert!(few(512).contains(&mapped), "{kernel}: {mapped}");
    }
    assert_eq!(slabs("v4.19", "64M", XFS, "{ write = \"new\" }"), 0);
}

/// They go with their pages: by truncation, by reclaim.
#[test]
fn buffer_heads_go_with_their_pages() {
    let deleted = slabs(
        "v6.1",
        "64M",
        EXT4,
        "{ write = \"new\" }, { delete = \"new\" }",
    );
    assert!(deleted <= 20, "{deleted} slabs are kept");
    let dropped = slabs(
        "v6.1",
        "64M",
        EXT4,
        "{ write = \"new\" }, { fdatasync = \"new\" }, { drop_caches = 1 }",
    );
    assert!(dropped <= 20, "{dropped} slabs are kept");
    let reclaimed = slabs(
        "v6.1",
        "17M",
        EXT4,
        "{ write = \"new\" }, { fdatasync = \"new\" }, { map = \"m\", kind = \"anon-private\", size = \"14M\" }, { touch = \"m\", access = \"write\" }",
    );
    assert!(reclaimed < 24, "{reclaimed} slabs are kept");
}

/// A CPU keeps thirty empty slabs of buffer heads from 3.2 to 5.15, and none before.
#[test]
fn cpus_keep_slabs_by_era() {
    let emptied = |kernel: &str| {
        slabs(
            kernel,
            "64M",
            EXT4,
            "{ write = \"new\" }, { delete = \"new\" }",
        )
    };
    // The slab in hand, five of all CPUs, and those that were set aside since the last time that these were too many.
    assert!((1..=7).contains(&emptied("v3.1")), "{}", emptied("v3.1"));
    let aside = [emptied("v3.2"), emptied("v5.15")];
    assert!(
        aside.iter().all(|kept| (8..=38).contains(kept)),
        "{aside:?}"
    );
    assert!((1..=14).contains(&emptied("v5.16")), "{}", emptied("v5.16"));
}

/// Many files are made, read, written to, synced and removed beside memory that is short, with metadata and slabs of
/// everything, by eras and file systems, and with disks that refuse writes. Everything else is what the invariants say.
#[test]
fn buffer_heads_belong_to_pages() {
    let body = include_str!("common/many-files.toml");
    for (kernel, mount) in [
        ("v2.6.36", EXT3),
        ("v3.4,model.page_tables=on", EXT3),
        ("v3.4", EXT4),
        ("v4.12", EXT4),
        ("v4.12", XFS),
        ("v6.1", EXT4),
        ("v6.18", EXT4),
        ("v6.18", XFS),
    ] {
        let kernel = format!("{kernel},model.slab_pages=on,model.buffer_heads=on");
        let healthy = with_metadata(&kernel, "16M", mount, body);
        let recording: Recording = checked(&healthy, 7);
        assert!(recording.state["nr_slab_reclaimable"] > 0, "{kernel}");
        let mut failing = healthy;
        refuse_writes(&mut failing);
        checked(&failing, 13);
    }
}

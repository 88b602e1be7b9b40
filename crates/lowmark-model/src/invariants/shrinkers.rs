//! Invariants of the caches of dentries, inodes, and nodes of trees with shadows alone.

use crate::mm::Mm;
use crate::mm::alloc::slub::{Cache, NO_OBJECT};
use std::collections::BTreeSet;

/// Objects that are allocated are in memory and freed ones are not; every unused object is on one list, once.
pub(super) fn check(mm: &Mm) {
    objects_are_conserved(mm);
    lists_hold_what_nobody_uses(mm);
    leaves_on_lists_have_shadows_alone(mm);
    extents_are_remembered_of_inodes_in_memory(mm);
}

fn objects_are_conserved(mm: &Mm) {
    let dentries = mm.shrinkers.dentries.iter().map(|dentry| dentry.cached);
    let dentries = dentries.map(|cached| (Cache::Dentry, cached));
    let inodes = mm.inodes.iter().filter(|file| file.cached.present);
    let inodes = inodes.map(|file| (mm.shrinkers.inode_cache(file.fs), file.cached));
    let all: Vec<_> = dentries.chain(inodes).collect();
    let evicted = mm.shrinkers.evicted_objects();
    let evicted: Vec<_> = evicted.filter(|&(_, object)| object != NO_OBJECT).collect();
    for kind in [Cache::Dentry, Cache::XfsInode, Cache::Ext4Inode] {
        let objects = all.iter().filter(|(cache, cached)| {
            *cache == kind && cached.present && cached.object != NO_OBJECT
        });
        let kept = evicted.iter().filter(|&&(cache, _)| cache == kind);
        assert_eq!(
            mm.slub.in_use(kind),
            (objects.count() + kept.count()) as u64,
            "{kind:?} in memory"
        );
    }
    for (_, cached) in all.iter().filter(|(_, cached)| !cached.present) {
        assert_eq!((cached.age, cached.object), (0, NO_OBJECT), "what is freed");
    }
    for (number, file) in mm.inodes.iter_enumerated() {
        assert!(
            file.name.is_none() || file.pages.len() == 0 || file.cached.present,
            "file {number} has pages and no inode"
        );
    }
}

fn lists_hold_what_nobody_uses(mm: &Mm) {
    let mut listed = 0;
    for (age, name) in mm.shrinkers.listed_dentries() {
        let dentry = &mm.shrinkers.dentries[name];
        assert_eq!(dentry.cached.age, age, "age of dentry {name}");
        listed += 1;
    }
    let dentries = mm.shrinkers.dentries.iter();
    let marked = dentries.filter(|dentry| dentry.cached.age > 0).count();
    assert_eq!(listed, marked, "dentries on lists");

    let mut listed = 0;
    for (age, inode) in mm.shrinkers.listed_inodes() {
        assert_eq!(mm.inodes[inode].cached.age, age, "age of inode {inode}");
        listed += 1;
    }
    let inodes = mm.inodes.iter();
    let marked = inodes.filter(|file| file.cached.age > 0).count();
    assert_eq!(listed, marked, "inodes on lists");
    for inode in mm.inodes.keys() {
        assert!(
            !mm.belongs_on_list(inode) || mm.inodes[inode].cached.age > 0,
            "inode {inode} is lost"
        );
    }
}

fn extents_are_remembered_of_inodes_in_memory(mm: &Mm) {
    let mut remembered = 0;
    let mut listed = 0;
    for inode in &mm.inodes {
        let (age, extents) = inode.status.listed();
        assert_eq!(age > 0, extents > 0, "a file with extents is on the list");
        assert!(
            extents == 0 || inode.cached.present,
            "extents of an inode that is gone"
        );
        assert!(
            extents <= inode.extents.iter().count(),
            "extents that are no more"
        );
        remembered += extents as u64;
        listed += usize::from(age > 0);
    }
    assert_eq!(
        mm.shrinkers.listed_extents().count(),
        listed,
        "files with extents"
    );
    let objects = mm.slub.in_use(Cache::ExtentStatus);
    assert!(objects == 0 || objects == remembered, "extents in slabs");
}

fn leaves_on_lists_have_shadows_alone(mm: &Mm) {
    let mut seen = BTreeSet::new();
    for (inode, leaf) in mm.listed_shadow_nodes() {
        assert!(
            mm.inodes[inode].pages.is_shadow_leaf(leaf),
            "leaf {leaf} of file {inode} has pages"
        );
        assert!(seen.insert((inode, leaf)), "a leaf is on two lists");
    }
    assert_eq!(seen.len() as u64, mm.shadow_nodes(), "leaves on lists");
}

//! How much memory a run takes on the machine that carries it out, by estimate.

use lowmark_spec::Scenario;
use lowmark_spec::machine::PAGE_SIZE;

/// Bytes for a page of the machine's RAM: frame, place on a list, the PTE or the slot of the page cache that leads to
/// the page, and the inner nodes of the page cache of larger files.
const PER_PAGE: u64 = 40;

/// Bytes for a file: its inode, extents, and the leaf, the group and the block of owner numbers of a file with a page in
/// memory. An estimate from one figure: runs of `fs-mark` with 1.6 million files of one page in 4 GB peaked at 1085 MB
/// before there were dentries; a name, its dentry, and places on lists come on top.
const PER_FILE: u64 = 850;

/// Bytes that all else takes.
const REST: u64 = 16 << 20;

/// About how many bytes of memory [`run`](crate::run) takes for a scenario, events not counted.
pub fn memory_expected(scenario: &Scenario) -> u64 {
    let workload = &scenario.workload;
    let in_sets = workload.filesets.iter();
    let in_sets = in_sets.map(|set| set.directories.saturating_mul(set.files));
    let files = in_sets.fold(workload.files.len() as u64, u64::saturating_add);
    let pages = scenario.machine.ram() / PAGE_SIZE;
    let bytes = files.saturating_mul(PER_FILE);
    bytes
        .saturating_add(pages.saturating_mul(PER_PAGE))
        .saturating_add(REST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_spec::workload::{FileKind, FileSet, SizeDist};

    #[test]
    fn files_and_ram_count() {
        let mut scenario = crate::example_scenario();
        let pages = (16 << 20) / PAGE_SIZE;
        assert_eq!(memory_expected(&scenario), REST + pages * PER_PAGE);
        scenario.workload.filesets = vec![FileSet {
            name: "new".to_owned(),
            fs: String::new(),
            directories: 8,
            files: 1000,
            size: SizeDist::Fixed(1),
            kind: FileKind::Random,
            exists: false,
        }];
        let with_files = REST + pages * PER_PAGE + 8000 * PER_FILE;
        assert_eq!(memory_expected(&scenario), with_files);
        scenario.workload.filesets[0].files = u64::MAX;
        assert_eq!(memory_expected(&scenario), u64::MAX);
    }
}

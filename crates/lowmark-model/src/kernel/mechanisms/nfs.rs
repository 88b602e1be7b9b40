//! NFS: COMMITs and the pages that wait for them.

macro_rules! nfs {
    ($next:ident $($others:ident)*; $($before:tt)*) => {
        $next! { $($others)*;
            $($before)*
            /// NFS: COMMITs and the pages that wait for them.
            nfs: Nfs {
                /// When a file on a server is committed although no task waits for it (`nfs_write_inode`).
                nfs_commit: NfsCommit {
                    /// After a turn, once more than half of its pages are written and wait for it.
                    HalfOfWrites = "half-of-writes",
                    /// After the last write of a turn is answered, or after one that finds none under way.
                    AfterWriteback = "after-writeback",
                }
                /// What pages that wait for a COMMIT count as.
                nfs_unstable: NfsUnstable {
                    /// As dirty, by a counter of their own (`NR_UNSTABLE_NFS`).
                    Reclaimable = "reclaimable",
                    /// As being written.
                    Writeback = "writeback",
                }
                /// What `nfs_congestion_kb` throttles.
                nfs_congestion: NfsCongestion {
                    /// Reclaim.
                    Reclaim = "reclaim",
                    /// The flusher.
                    Flusher = "flusher",
                }
            }
        }
    };
}

pub(super) use nfs;

//! The changes of what is read ahead of files and swap, as in [`history`](super::history).

use super::change::{Change, v};
use super::mechanisms::*;

/// Every change of readahead, oldest first.
pub(super) const READAHEAD: &[Change] = &[
    Change {
        name: "willneed-reads-swap",
        version: v(3, 9),
        commit: "1998cc048901",
        summary: "MADV_WILLNEED reads pages that are in swap",
        effect: |m| {
            m.swap.willneed_swap = WillneedSwap::Read;
        },
    },
    Change {
        name: "willneed-2m",
        version: v(3, 15),
        commit: "6d2be915e589",
        summary: "one call reads 2 MiB of a file ahead, whatever is free on the node",
        effect: |m| {
            m.files.forced_readahead = ForcedReadahead::TwoMiB;
        },
    },
    Change {
        name: "willneed-readahead-size",
        version: v(4, 4),
        commit: "600e19afc5f8",
        summary: "one call reads as much of a file ahead as the device's readahead allows",
        effect: |m| {
            m.files.forced_readahead = ForcedReadahead::ReadaheadSize;
        },
    },
    Change {
        name: "willneed-request-size",
        version: v(4, 10),
        commit: "9491ae4aade6",
        summary: "one call reads as much of a file ahead as a request takes, if that is more",
        effect: |m| {
            m.files.forced_readahead = ForcedReadahead::RequestSize;
        },
    },
    Change {
        name: "read-request-size",
        version: v(4, 10),
        commit: "9491ae4aade6",
        summary: "a read of more than the device's readahead goes as far as it wants in requests of the largest size",
        effect: |m| {
            m.files.long_reads = LongReads::RequestSize;
        },
    },
    Change {
        name: "readahead-within-window",
        version: v(4, 18),
        commit: "dc30b96ab6d5",
        summary: "a window that would ask for the next one at once is not read with it if both are too long",
        effect: |m| {
            m.files.own_mark = OwnMark::WithinWindow;
        },
    },
];

//! The changes of generations of pages, as in [`history`](super::history).

use super::change::{Change, v};
use super::mechanisms::*;

/// Every change of `lru_gen` since 6.1, oldest first.
pub(super) const LRU_GEN: &[Change] = &[
    Change {
        name: "gen-pass-alone",
        version: v(6, 3),
        commit: "e4dde56cd208",
        summary: "lru_gen: kswapd begins at the priority that it will need; a pass ends when it has freed its target",
        effect: |m| {
            m.lru_gen.gen_pass = GenPass::Target;
            m.lru_gen.gen_priority = GenPriority::Estimated;
        },
    },
    Change {
        name: "gen-protect-page-cache",
        version: v(6, 7),
        commit: "081488051d28",
        summary: "lru_gen: pages of files that are read enter the second oldest generation if there are four",
        effect: |m| {
            m.lru_gen.gen_entry = GenEntry::SecondOldest;
        },
    },
    Change {
        name: "gen-count-refaults",
        version: v(6, 7),
        commit: "081488051d28",
        summary: "lru_gen: every page that comes back is counted, not only those that were taken too early",
        effect: |m| {
            m.lru_gen.gen_refault_count = GenRefaultCount::All;
        },
    },
    Change {
        name: "gen-stop-at-high",
        version: v(6, 7),
        commit: "5095a2b23987",
        summary: "lru_gen: kswapd ends a pass when every zone is above its high watermark",
        effect: |m| {
            m.lru_gen.gen_pass = GenPass::TargetOrHigh;
        },
    },
    Change {
        name: "gen-small-groups",
        version: v(6, 7),
        commit: "4376807bf2d5",
        summary: "lru_gen: memory cgroups that are small are tried before they are passed over",
        effect: |m| {
            m.lru_gen.gen_group = GenGroup::SizeLast;
        },
    },
    Change {
        name: "gen-events",
        version: v(6, 8),
        commit: "8c2214fc9a47",
        summary: "lru_gen: batches are traced as those of inactive lists are",
        effect: |m| {
            m.lru_gen.gen_events = GenEvents::Batches;
        },
    },
    Change {
        name: "gen-priority-capped",
        version: v(6, 11),
        commit: "3f74e6bd3b84",
        summary: "lru_gen: kswapd begins no deeper than at priority 6, so that caches are not shrunk too much",
        effect: |m| {
            m.lru_gen.gen_priority = GenPriority::Capped;
        },
    },
    Change {
        name: "gen-own-entry-apart",
        version: v(6, 12),
        commit: "1d4832becdc2",
        summary: "lru_gen: a page that is isolated and found used is kept, not activated",
        effect: |m| {
            m.lru_gen.gen_own_entry = GenOwnEntry::Apart;
        },
    },
    Change {
        name: "gen-wake-flusher",
        version: v(6, 13),
        commit: "1bc542c6a0d1",
        summary: "lru_gen: flushers are woken when all old pages of files are dirty",
        effect: |m| {
            m.lru_gen.gen_flusher = GenFlusher::Summed;
        },
    },
    Change {
        name: "gen-ageing-by-count",
        version: v(6, 14),
        commit: "798c0330c2ca",
        summary: "lru_gen: a new generation is made when there are three, however many pages each has",
        effect: |m| {
            m.lru_gen.gen_ageing = GenAgeing::Count;
        },
    },
    Change {
        name: "gen-type-by-all-tiers",
        version: v(6, 14),
        commit: "37a260870f2c",
        summary: "lru_gen: anonymous pages and pages of files are compared by all that came back, and age independently",
        effect: |m| {
            m.lru_gen.gen_type = GenType::AllTiers;
            m.lru_gen.gen_min_seq = GenMinSeq::Free;
        },
    },
    Change {
        name: "gen-two-looks",
        version: v(6, 14),
        commit: "4d5d14a01e2c",
        summary: "lru_gen: a page that is mapped becomes young when it is found used twice; pages that were in use enter younger (with b1a71694fb00)",
        effect: |m| {
            m.lru_gen.gen_entry = GenEntry::Workingset;
            m.lru_gen.gen_looks = GenLooks::Two;
            m.lru_gen.gen_refault = GenRefault::Window;
        },
    },
    Change {
        name: "gen-batch-as-asked",
        version: v(6, 17),
        commit: "af827e090489",
        summary: "lru_gen: a batch looks at no more pages than the priority asks for, and at fewer of a group that is partly protected",
        effect: |m| {
            m.lru_gen.gen_batch = GenBatch::Asked;
        },
    },
];

//! Generations of pages (`lru_gen`), where they are switched on.

macro_rules! lru_gen {
    ($next:ident $($others:ident)*; $($before:tt)*) => {
        $next! { $($others)*;
            $($before)*
            /// Generations of pages (`lru_gen`), where `lru_gen.enabled` is set.
            lru_gen: LruGen {
                /// How a pass over a node goes, and who makes a new generation (`lru_gen_shrink_lruvec`, `lru_gen_age_node`).
                gen_pass: GenPass {
                    /// A pass goes by way of that over active and inactive lists. kswapd makes a new generation before a pass,
                    /// a direct reclaimer in the course of one. From priority 10 on a pass ends when the free pages of every
                    /// zone are above its watermark.
                    Fair = "fair",
                    /// A pass goes over generations alone and ends when it has freed its target. A reclaimer that finds too
                    /// few old pages makes a new generation and leaves the lists.
                    Target = "target",
                    /// The same, and kswapd also ends a pass when every zone has 64 pages more than its high watermark.
                    TargetOrHigh = "target-or-high",
                }
                /// What becomes of a memory cgroup that has too few pages for a share of them to be worth the while
                /// (`shrink_one`).
                gen_group: GenGroup {
                    /// It is passed over.
                    SizeFirst = "size-first",
                    /// It is tried, and comes later next time.
                    SizeLast = "size-last",
                }
                /// At which priority kswapd begins (`set_initial_priority`).
                gen_priority: GenPriority {
                    /// At 12.
                    Default = "default",
                    /// At the priority at which a pass would free its target if all inactive pages went and no others.
                    Estimated = "estimated" needs(lru_gen.gen_pass = GenPass::Target | GenPass::TargetOrHigh),
                    /// The same, but no deeper than at 6.
                    Capped = "capped" needs(lru_gen.gen_pass = GenPass::Target | GenPass::TargetOrHigh),
                }
                /// Which generation a page enters that is read from a file or comes back from swap (`lru_gen_add_folio`).
                gen_entry: GenEntry {
                    /// The oldest.
                    Oldest = "oldest",
                    /// The second oldest, if there are four. Pages that were read five times are never taken before they
                    /// have become one generation younger (`lru_gen_refault`, `sort_folio`).
                    SecondOldest = "second-oldest",
                    /// The oldest, or the second oldest if the page had been in use before it was evicted. A page that a fault
                    /// brings enters the second youngest, or the youngest under the same condition.
                    Workingset = "workingset" needs(lru_gen.gen_refault = GenRefault::Window, lru_gen.gen_looks = GenLooks::Two),
                }
                /// How often a page has to be found used in page tables to become young (`folio_update_gen`,
                /// `lru_gen_set_refs`).
                gen_looks: GenLooks {
                    /// Once.
                    One = "one",
                    /// Twice: the first time it is marked as referenced.
                    Two = "two" needs(lru_gen.gen_own_entry = GenOwnEntry::Apart, lru_gen.gen_refault = GenRefault::Window, lru_gen.gen_entry = GenEntry::Workingset),
                }
                /// How a look around treats the entry of the page that reclaim asked about (`lru_gen_look_around`).
                gen_own_entry: GenOwnEntry {
                    /// Like those beside it: the page is marked as referenced, so that it is activated.
                    Marked = "marked",
                    /// Apart from them, so that the page is kept.
                    Apart = "apart",
                }
                /// Which pages that come back count as taken too early (`lru_gen_refault`).
                gen_refault: GenRefault {
                    /// Those taken from the generation that is still the oldest.
                    Oldest = "oldest",
                    /// Those taken less than four generations ago. Accesses by read(2) and write(2) beyond the fourth mark a
                    /// page as in use.
                    Window = "window" needs(lru_gen.gen_looks = GenLooks::Two, lru_gen.gen_entry = GenEntry::Workingset),
                }
                /// What becomes of the count of a page's accesses when the page enters the youngest generation
                /// (`lru_gen_add_folio`).
                gen_active_refs: GenActiveRefs {
                    /// It stays.
                    Kept = "kept",
                    /// It begins anew. Posted to linux-mm by Wei Xu in October 2024, and in Debian's 6.12.117.
                    Cleared = "cleared",
                }
                /// When pages that come back are counted (`workingset_refault`, `workingset_activate`).
                gen_refault_count: GenRefaultCount {
                    /// When they were taken too early. `workingset_activate` counts pages that are kept because they were
                    /// read often.
                    Recent = "recent",
                    /// Always. `workingset_activate` counts those that were taken too early.
                    All = "all",
                }
                /// When there are too few old pages (`should_run_aging`).
                gen_ageing: GenAgeing {
                    /// When there are three generations and the youngest has more than half of the pages, or the oldest less
                    /// than a quarter.
                    Spread = "spread",
                    /// When there are three generations.
                    Count = "count" needs(lru_gen.gen_pass = GenPass::Target | GenPass::TargetOrHigh),
                }
                /// Whether the oldest generations of anonymous pages and of pages of files go together
                /// (`try_to_inc_min_seq`).
                gen_min_seq: GenMinSeq {
                    /// The oldest generation of anonymous pages is never younger than that of files, and the kind with the
                    /// older one is taken first.
                    Lockstep = "lockstep",
                    /// They are independent.
                    Free = "free" needs(lru_gen.gen_type = GenType::AllTiers),
                }
                /// By what anonymous pages and pages of files are compared (`get_type_to_scan`, `get_tier_idx`).
                gen_type: GenType {
                    /// By what part of the pages came back that were read once at most. Pages that were read more often are
                    /// kept if more than twice that part of them came back.
                    FirstTier = "first-tier",
                    /// By what part of all pages came back. One and a half takes the place of twice.
                    AllTiers = "all-tiers",
                }
                /// What becomes of pages in the oldest generation that have to be written or are being written (`sort_folio`).
                gen_dirty: GenDirty {
                    /// They are not taken, and become a generation younger.
                    Sorted = "sorted",
                    /// They are taken, and treated as on an inactive list (75d4c3f5fb98, 7.2; also in Debian's 6.12.117).
                    Taken = "taken",
                }
                /// Whether the flushers are woken when the oldest pages of files are dirty (`try_to_shrink_lruvec`).
                gen_flusher: GenFlusher {
                    /// No.
                    Never = "never",
                    /// Yes, when all pages of files that a pass over the node has met were dirty.
                    Summed = "summed",
                }
                /// Whether batches are traced (`mm_vmscan_lru_isolate`, `mm_vmscan_lru_shrink_inactive`).
                gen_events: GenEvents {
                    /// No.
                    None = "none",
                    /// Yes.
                    Batches = "batches",
                }
                /// Pages that are looked at in one go (`scan_folios`), and what memory cgroups are spared (`get_nr_to_scan`).
                gen_batch: GenBatch {
                    /// Up to 4,096. A group is spared as a whole or not at all.
                    Fixed = "fixed",
                    /// As many as the priority says, up to 4,096. Of a group that is partly protected fewer pages are looked at.
                    Asked = "asked",
                }
            }
        }
    };
}

pub(super) use lru_gen;

//! `memory.events`, `memory.swap.events` and counters of `memory.stat`: what happened to a group and to those inside it.
//!
//! Everything is counted where it happens. What a group's files say is that of all inside it together;
//! `memory.events.local` is its own.

use super::{Memcg, Memcontrol};
use crate::ids::{LruvecId, MemcgId};
use crate::kernel::ProactiveCounters;
use crate::mm::Mm;
use crate::mm::types::Lru;
use lowmark_spec::machine::PAGE_SIZE;

/// An event of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// It was reclaimed from although it was below `memory.low`.
    Low,
    /// Reclaim because of `memory.high`.
    High,
    /// A charge met `memory.max`.
    Max,
    /// Nothing of it could be reclaimed any more.
    Oom,
    /// A page had to stay in memory because of `memory.swap.max`.
    SwapMax,
    /// A page had to stay in memory because of it, or because swap was full, or a huge page found no cluster of slots.
    SwapFail,
}

/// Events by their files and names, in the order of [`Event`].
const EVENTS: [(&str, &str); 6] = [
    ("memory.events", "low"),
    ("memory.events", "high"),
    ("memory.events", "max"),
    ("memory.events", "oom"),
    ("memory.swap.events", "max"),
    ("memory.swap.events", "fail"),
];

/// Who reclaims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reclaimer {
    /// kswapd.
    Kswapd,
    /// A task that needs memory.
    Direct,
    /// A task that was asked to by `memory.reclaim`.
    Proactive,
}

/// Counters of `memory.stat`, pages; by reclaimer, or of anon and of file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Pages scanned on inactive lists.
    pub(crate) pgscan: [u64; 3],
    /// Pages reclaimed.
    pub(crate) pgsteal: [u64; 3],
    /// Pages scanned on active lists.
    pub(crate) pgrefill: u64,
    /// Pages that left the active lists.
    pub(crate) pgdeactivate: u64,
    /// Pages that came back.
    pub(crate) refault: [u64; 2],
    /// Those that became active.
    pub(crate) activate: [u64; 2],
    /// Those that had been active before.
    pub(crate) restore: [u64; 2],
}

impl Counts {
    /// Lines of `memory.stat`. Where there are none for what was asked for, that is direct.
    fn lines(&self, proactive: ProactiveCounters) -> Vec<(&'static str, u64)> {
        let sum = |by: &[u64; 3]| by.iter().sum::<u64>();
        let apart = proactive == ProactiveCounters::Own;
        let direct = |by: &[u64; 3]| by[1] + if apart { 0 } else { by[2] };
        let mut lines = vec![
            ("pgscan", sum(&self.pgscan)),
            ("pgsteal", sum(&self.pgsteal)),
            ("pgscan_kswapd", self.pgscan[0]),
            ("pgsteal_kswapd", self.pgsteal[0]),
            ("pgscan_direct", direct(&self.pgscan)),
            ("pgsteal_direct", direct(&self.pgsteal)),
            ("pgrefill", self.pgrefill),
            ("pgdeactivate", self.pgdeactivate),
            ("workingset_refault_anon", self.refault[0]),
            ("workingset_refault_file", self.refault[1]),
            ("workingset_activate_anon", self.activate[0]),
            ("workingset_activate_file", self.activate[1]),
            ("workingset_restore_anon", self.restore[0]),
            ("workingset_restore_file", self.restore[1]),
        ];
        if apart {
            lines.push(("pgscan_proactive", self.pgscan[2]));
            lines.push(("pgsteal_proactive", self.pgsteal[2]));
        }
        lines
    }
}

impl Memcontrol {
    /// `memcg_memory_event`
    pub(crate) fn note(&mut self, memcg: MemcgId, event: Event) {
        if memcg != MemcgId::ROOT {
            self.groups[memcg].events[event as usize] += 1;
        }
    }

    /// The groups but the root, with their numbers.
    fn named(&self) -> impl Iterator<Item = (MemcgId, &Memcg)> {
        self.groups.iter_enumerated().skip(1)
    }
}

impl Mm {
    /// Counters of the group that lists belong to, to be changed.
    #[inline]
    pub(crate) fn memcg_counts(&mut self, lruvec: LruvecId) -> Option<&mut Counts> {
        let memcg = self.lruvec_memcg(lruvec);
        let group = self.memcontrol.groups.get_mut(memcg)?;
        (memcg != MemcgId::ROOT).then_some(&mut group.counts)
    }

    /// Counters of the groups' files, by `cgroup/PATH/FILE.KEY`.
    pub(crate) fn memcg_counters(&self) -> impl Iterator<Item = (String, u64)> {
        let proactive = self.kernel.mechanisms.memcg.proactive_counters;
        self.memcontrol.named().flat_map(move |(id, group)| {
            let groups = || {
                self.memcontrol
                    .subtree(id)
                    .map(|at| &self.memcontrol.groups[MemcgId::from(at)])
            };
            let mut counters = Vec::new();
            for (at, (file, key)) in EVENTS.into_iter().enumerate() {
                let all = groups().map(|group| group.events[at]).sum();
                counters.push((format!("{file}.{key}"), all));
                if file == "memory.events" {
                    counters.push((format!("{file}.local.{key}"), group.events[at]));
                }
            }
            let own: Vec<_> = groups()
                .map(|group| group.counts.lines(proactive))
                .collect();
            for (line, (key, _)) in own[0].iter().enumerate() {
                let all = own.iter().map(|lines| lines[line].1).sum();
                counters.push((format!("memory.stat.{key}"), all));
            }
            let named = counters.into_iter();
            named
                .map(|(name, count)| (file_of(&group.path, &name), count))
                .collect::<Vec<_>>()
        })
    }

    /// What the groups have, by the names of their files: `memory.current` and so on in bytes.
    pub(crate) fn memcg_state(&self) -> impl Iterator<Item = (String, u64)> {
        self.memcontrol.named().flat_map(|(id, group)| {
            let roots = self.lruvecs.keys().take(self.sets);
            let lists: Vec<LruvecId> = roots.map(|root| self.memcg_lruvec(root, id)).collect();
            let len = |lru| -> u64 { lists.iter().map(|&at| self.tree_len(at, lru)).sum() };
            [
                ("memory.current", group.usage),
                ("memory.swap.current", self.swap_usage(id)),
                ("memory.stat.inactive_anon", len(Lru::InactiveAnon)),
                ("memory.stat.active_anon", len(Lru::ActiveAnon)),
                ("memory.stat.inactive_file", len(Lru::InactiveFile)),
                ("memory.stat.active_file", len(Lru::ActiveFile)),
            ]
            .map(|(name, pages)| (file_of(&group.path, name), pages * PAGE_SIZE))
        })
    }
}

/// How a file of a group is called: `cgroup/PATH/FILE`, of the group around a whole workload `cgroup/FILE`.
fn file_of(path: &str, file: &str) -> String {
    match path {
        "" => format!("cgroup/{file}"),
        path => format!("cgroup/{path}/{file}"),
    }
}

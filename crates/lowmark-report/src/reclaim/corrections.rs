//! What the default report corrects of the kernel's script, and by how much.
//!
//! Each fault of the script is named with the number of events that it concerns in this trace and, where
//! one pass can tell, its figure and the one printed here. A fault that this trace does not show is left out.

use super::figures::ReclaimFigures;
use super::pages::Actor;
use super::tasks::Span;
use serde::Serialize;

/// A figure that was corrected.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Correction {
    /// Stable name.
    pub id: &'static str,
    /// What was corrected and why, one sentence.
    pub text: String,
    /// Events concerned.
    pub count: u64,
    /// Figure of the script, if it can be told.
    pub script: Option<f64>,
    /// Figure here, if it can be told.
    pub here: Option<f64>,
    /// Unit of the two.
    pub unit: &'static str,
}

struct List(Vec<Correction>);

impl List {
    fn add(
        &mut self,
        id: &'static str,
        count: u64,
        text: impl Into<String>,
        figures: Option<(f64, f64)>,
        unit: &'static str,
    ) {
        if count > 0 {
            self.0.push(Correction {
                id,
                text: text.into(),
                count,
                script: figures.map(|f| f.0),
                here: figures.map(|f| f.1),
                unit,
            });
        }
    }
}

impl ReclaimFigures {
    /// The corrections that this trace shows, in a fixed order.
    pub fn corrections(&self) -> Vec<Correction> {
        let mut list = List(Vec::new());
        self.correct_pairs(&mut list);
        self.correct_kswapd(&mut list);
        self.correct_scope(&mut list);
        self.correct_isolations(&mut list);
        self.correct_reading(&mut list);
        self.correct_aggregation(&mut list);
        list.0
    }

    fn correct_pairs(&self, list: &mut List) {
        let direct = self.pairs[Span::Direct as usize];
        let stalled = self.span(Span::Direct).sum_s();
        let stale = self.script.stale_ns as f64 / 1e9;
        let lost = self.script.lost_ns as f64 / 1e9;
        let after_begin = direct.ends_without_begin;
        list.add(
            "end-without-begin",
            after_begin,
            "ends of direct reclaim without a begin have no time; the script measures them from the \
             begin before, which had ended",
            Some((stalled + stale, stalled)),
            "s",
        );
        list.add(
            "stalls-lost-behind-hole",
            self.script.lost_processes,
            "processes whose first event is an end keep their other stalls; the script stops summing \
             at that hole",
            Some((stalled - lost, stalled)),
            "s",
        );
        for (pairs, span) in self.pairs.iter().zip(Span::ALL) {
            let what = span.label();
            list.add(
                "nested-begin",
                pairs.nested_begins,
                format!("{what}: begins before the last one ended; the older ones have no time"),
                None,
                "",
            );
            list.add(
                "begin-without-end",
                pairs.open_at_end,
                format!(
                    "{what}: begins without an end; their {:.6} s until the end of the trace are in \
                     no sum",
                    pairs.open_ns as f64 / 1e9
                ),
                None,
                "",
            );
            if span != Span::Direct {
                list.add(
                    "other-end-without-begin",
                    pairs.ends_without_begin,
                    format!("{what}: ends without a begin have no time"),
                    None,
                    "",
                );
            }
        }
    }

    fn correct_kswapd(&self, list: &mut List) {
        let kswapd = &self.kswapd;
        let awake = kswapd.awake_ns as f64 / 1e9;
        let since_boot = kswapd.since_boot_ns as f64 / 1e9;
        list.add(
            "kswapd-awake-at-start",
            kswapd.awake_at_start,
            "kswapd was awake when the trace began; its time until then is not known",
            None,
            "",
        );
        list.add(
            "kswapd-sleep-without-wake",
            kswapd.sleeps_without_wake,
            "sleeps of kswapd without a wake have no time; the script measures them from boot",
            Some((awake + since_boot, awake)),
            "s",
        );
        let open = kswapd.open_ns as f64 / 1e9;
        list.add(
            "kswapd-awake-at-end",
            kswapd.awake_at_end,
            "kswapd was awake when the trace ended; its time until then is printed apart, the script \
             loses it",
            Some((awake, awake + open)),
            "s",
        );
    }

    fn correct_scope(&self, list: &mut List) {
        let others = self.script.requests_of_others;
        list.add(
            "requests-of-others",
            others,
            "wakes of kswapd asked for by processes that never reclaim directly count; the script \
             leaves them out",
            Some(((self.requests - others) as f64, self.requests as f64)),
            "requests",
        );
        let memcg = self.pairs[Span::Memcg as usize].begins;
        list.add(
            "memcg-reclaim",
            memcg,
            "reclaims for the limit of a memory cgroup are reported; the script does not know them",
            Some((0.0, self.span(Span::Memcg).sum_s())),
            "s",
        );
    }

    fn correct_isolations(&self, list: &mut List) {
        if !self.by_shrink_inactive {
            return;
        }
        for actor in [Actor::Direct, Actor::Kswapd] {
            let totals = self.totals(actor);
            let text = format!(
                "{}: pages scanned are those of mm_vmscan_lru_shrink_inactive; the script's rule counts \
                 isolations, of active lists and of batches with nothing taken too",
                actor.label()
            );
            let differ = totals.isolated_script.abs_diff(totals.scanned);
            let figures = (totals.isolated_script as f64, totals.scanned as f64);
            // A trace without isolations has nothing that could differ.
            if totals.isolated_script > 0 {
                list.add("scanned-by-isolation", differ, text, Some(figures), "pages");
            }
        }
    }

    fn correct_reading(&self, list: &mut List) {
        let blind: u64 = self.script.blind.values().sum();
        list.add(
            "flag-columns",
            blind,
            "events with flags that the script does not know (lazy preemption, disabled bottom halves) \
             count; it drops their lines",
            None,
            "",
        );
        let folios = self.events.get("mm_vmscan_write_folio").copied();
        list.add(
            "write-folio",
            folios.unwrap_or(0),
            "pages written by mm_vmscan_write_folio count; the script of 6.1 knows mm_vmscan_writepage only",
            Some((0.0, folios.unwrap_or(0) as f64)),
            "pages",
        );
    }

    fn correct_aggregation(&self, list: &mut List) {
        let Some([alone, folded]) = &self.compat else {
            return;
        };
        let differ = (alone.stalled_s - folded.stalled_s).abs() >= 0.000_001;
        list.add(
            "ignore-pid",
            u64::from(differ),
            "all stalls of processes of one name count; with --ignore-pid the script overwrites those \
             of one process by those of the next",
            Some((folded.stalled_s, alone.stalled_s)),
            "s",
        );
    }
}

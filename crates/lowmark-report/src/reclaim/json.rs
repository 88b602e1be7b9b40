//! The report as JSON, with stable field names.

use super::check::Check;
use super::compat::CompatSummary;
use super::corrections::Correction;
use super::distribution::Quantiles;
use super::figures::{
    KswapdFigures, MemcgFigures, OrderFigures, ProcessFigures, ReclaimFigures, Totals,
};
use super::pages::{Actor, Writes};
use super::rows::Derived;
use super::sink::Waits;
use super::tasks::{Pairs, Span};
use super::timeline::{percent, sum};
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the JSON form.
const JSON_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    lines: u64,
    understood: u64,
    not_understood: u64,
    not_understood_by_kind: &'a BTreeMap<String, u64>,
    lost: u64,
    gaps: u64,
    unsorted: u64,
    span_s: f64,
    events: &'a BTreeMap<&'static str, u64>,
    totals: BTreeMap<&'static str, &'a Totals>,
    totals_from: &'static str,
    stalls: BTreeMap<&'static str, Quantiles>,
    pairs: BTreeMap<&'static str, &'a Pairs>,
    direct_reclaims: u64,
    wake_kswapd_requests: u64,
    kswapd: &'a KswapdFigures,
    congestion: BTreeMap<&'static str, BTreeMap<&'static str, &'a Waits>>,
    throttled: BTreeMap<&'static str, BTreeMap<&'static str, &'a Waits>>,
    writepage: BTreeMap<&'static str, &'a Writes>,
    by_order: &'a [OrderFigures],
    by_process: &'a [ProcessFigures],
    by_memcg: &'a [MemcgFigures],
    efficiency: Efficiency,
    timeline: Timeline,
    derived: DerivedJson,
    corrections: Vec<Correction>,
    missing: Vec<Missing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vmstat: Option<Vec<VmstatJson>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    vmstat_check: Vec<Check>,
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<ScriptJson<'a>>,
}

/// Reclaimed per scanned, percent.
#[derive(Serialize)]
struct Efficiency {
    overall: Option<f64>,
    kswapd: Option<f64>,
    direct: Option<f64>,
    memcg: Option<f64>,
    other: Option<f64>,
    /// By slice of the time line.
    over_time: Vec<Option<f64>>,
}

#[derive(Serialize)]
struct Timeline {
    begin_s: f64,
    slice_s: f64,
    slices: Vec<SliceJson>,
}

#[derive(Serialize)]
struct SliceJson {
    events: u64,
    scanned: u64,
    reclaimed: u64,
    written: u64,
    direct_stalled_us: u64,
    memcg_stalled_us: u64,
    throttled_us: u64,
    kswapd_awake_us: u64,
}

/// See [`Derived`].
#[derive(Serialize)]
struct DerivedJson {
    scanned: f64,
    reclaimed: Option<f64>,
    reclaimed_percent: Option<f64>,
    written_percent: Option<f64>,
    file_written_percent: Option<f64>,
    stalled_percent: Option<f64>,
    awake_percent: Option<f64>,
}

#[derive(Serialize)]
struct Missing {
    row: &'static str,
    why: &'static str,
}

#[derive(Serialize)]
struct VmstatJson {
    name: &'static str,
    unit: &'static str,
    value: f64,
}

#[derive(Serialize)]
struct ScriptJson<'a> {
    by_pid: &'a CompatSummary,
    ignore_pid: &'a CompatSummary,
}

impl ReclaimFigures {
    /// The report as JSON.
    pub fn json(&self) -> serde_json::Value {
        let classes = ["direct", "kswapd"];
        let reasons = ["writeback", "isolated", "noprogress", "congested", "other"];
        let congestion = classes.iter().zip(&self.congestion).map(|(class, waits)| {
            let kinds = ["congest", "conditional"].into_iter().zip(waits);
            (*class, kinds.collect())
        });
        let throttled = classes.iter().zip(&self.throttled).map(|(class, waits)| {
            let some = reasons.into_iter().zip(waits);
            (*class, some.filter(|(_, w)| w.number > 0).collect())
        });
        let rows = self.context.vmstat.as_ref().map(|vmstat| {
            let rows = vmstat.rows(self.context.elapsed_s).into_iter();
            rows.map(|r| VmstatJson {
                name: r.name,
                unit: r.unit,
                value: r.exact,
            })
            .collect()
        });
        let document = Document {
            version: JSON_VERSION,
            lines: self.account.lines,
            understood: self.account.understood,
            not_understood: self.account.missed(),
            not_understood_by_kind: &self.account.not_understood,
            lost: self.account.lost,
            gaps: self.account.gaps,
            unsorted: self.account.unsorted,
            span_s: self.account.span_s(),
            events: &self.events,
            totals: Actor::ALL
                .iter()
                .map(|actor| (actor.name(), self.totals(*actor)))
                .collect(),
            totals_from: if self.by_shrink_inactive {
                "mm_vmscan_lru_shrink_inactive"
            } else {
                "mm_vmscan_lru_isolate"
            },
            stalls: self.stalls_json(),
            pairs: Span::ALL
                .iter()
                .map(|span| span.name())
                .zip(&self.pairs)
                .filter(|(_, pairs)| **pairs != Pairs::default())
                .collect(),
            direct_reclaims: self.pairs[Span::Direct as usize].begins,
            wake_kswapd_requests: self.requests,
            kswapd: &self.kswapd,
            congestion: congestion.collect(),
            throttled: throttled.collect(),
            writepage: classes.into_iter().zip(&self.writes).collect(),
            by_order: &self.orders,
            by_process: &self.processes,
            by_memcg: &self.memcgs,
            efficiency: self.efficiency_json(),
            timeline: self.timeline_json(),
            derived: DerivedJson::of(&Derived::of(&self.measures())),
            corrections: self.corrections(),
            missing: self
                .missing()
                .into_iter()
                .map(|(row, why)| Missing { row, why })
                .collect(),
            vmstat: rows,
            vmstat_check: self.checks(),
            script: self
                .compat
                .as_ref()
                .map(|[by_pid, ignore_pid]| ScriptJson { by_pid, ignore_pid }),
        };
        serde_json::to_value(document).unwrap_or_default()
    }

    /// Direct and memory cgroup reclaim always, the others where they occurred.
    fn stalls_json(&self) -> BTreeMap<&'static str, Quantiles> {
        let all = Span::ALL.iter().map(|span| (span, self.span(*span)));
        let always = |span: &Span| matches!(span, Span::Direct | Span::Memcg);
        all.filter(|(span, d)| always(span) || d.count() > 0)
            .map(|(span, d)| (span.name(), d.quantiles()))
            .collect()
    }

    fn efficiency_json(&self) -> Efficiency {
        let slices = self.slices.slices().iter();
        Efficiency {
            overall: self.efficiency(None),
            kswapd: self.efficiency(Some(Actor::Kswapd)),
            direct: self.efficiency(Some(Actor::Direct)),
            memcg: self.efficiency(Some(Actor::Memcg)),
            other: self.efficiency(Some(Actor::Other)),
            over_time: slices
                .map(|s| {
                    let known = self.by_shrink_inactive;
                    percent(sum(&s.reclaimed), self.slice_scanned(s)).filter(|_| known)
                })
                .collect(),
        }
    }

    fn timeline_json(&self) -> Timeline {
        let slices = self.slices.slices().iter().map(|s| SliceJson {
            events: s.events,
            scanned: self.slice_scanned(s),
            reclaimed: sum(&s.reclaimed),
            written: sum(&s.written),
            direct_stalled_us: s.direct_ns / 1000,
            memcg_stalled_us: s.memcg_ns / 1000,
            throttled_us: s.throttled_ns / 1000,
            kswapd_awake_us: s.kswapd_ns / 1000,
        });
        Timeline {
            begin_s: self.slices.base_ns() as f64 / 1e9,
            slice_s: self.slices.length_ns() as f64 / 1e9,
            slices: slices.collect(),
        }
    }
}

impl DerivedJson {
    fn of(derived: &Derived) -> DerivedJson {
        DerivedJson {
            scanned: derived.scanned,
            reclaimed: derived.reclaimed,
            reclaimed_percent: derived.reclaimed_percent,
            written_percent: derived.written_percent,
            file_written_percent: derived.file_written_percent,
            stalled_percent: derived.stalled_percent,
            awake_percent: derived.awake_percent,
        }
    }
}

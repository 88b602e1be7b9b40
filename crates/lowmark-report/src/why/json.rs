//! The answer as JSON, with stable field names; times in ns, all numbers integers.

use super::account::{Gap, LimitRow, Row};
use super::answer::{Advised, Answer, EpisodeRow, Stall};
use super::cause::{Confidence, Role};
use super::faults::Fault;
use super::wait::{Inside, Limit, Request};
use serde::Serialize;

/// Version of the JSON form.
const JSON_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    heading: &'a [String],
    begin_ns: Option<u64>,
    end_ns: Option<u64>,
    sentence: &'a str,
    found: bool,
    limit: Option<Limit>,
    demand: Option<&'static str>,
    traced_ns: u64,
    estimated_ns: u64,
    beside_pressure_ns: u64,
    pressure_ns: Option<u64>,
    kernel_threads_ns: u64,
    waiters: usize,
    lost_events: u64,
    limits: Vec<LimitJson>,
    causes: Vec<CauseJson<'a>>,
    knobs: Vec<KnobJson>,
    useless: Vec<KnobJson>,
    known_faults: Vec<FaultJson>,
    episode_count: usize,
    episodes: Vec<EpisodeJson>,
    watermarks: Option<[u64; 3]>,
    longest: Vec<StallJson<'a>>,
    cannot_say: Vec<GapJson>,
}

#[derive(Serialize)]
struct LimitJson {
    limit: Limit,
    waits: u64,
    traced_ns: u64,
    estimated_ns: u64,
}

#[derive(Serialize)]
struct CauseJson<'a> {
    id: &'static str,
    name: &'static str,
    role: Role,
    traced_ns: u64,
    estimated_ns: u64,
    confidence: Confidence,
    evidence: &'a str,
}

#[derive(Serialize)]
struct KnobJson {
    name: &'static str,
    change: &'static str,
    why: &'static str,
    cause: &'static str,
}

#[derive(Serialize)]
struct FaultJson {
    #[serde(flatten)]
    fault: &'static Fault,
    version_is_known: bool,
}

#[derive(Serialize)]
struct EpisodeJson {
    begin_ns: u64,
    end_ns: u64,
    waits: u64,
    tasks: usize,
    waited_ns: u64,
    limit: Limit,
    demand: Option<&'static str>,
    free_pages: Option<u64>,
}

#[derive(Serialize)]
struct StallJson<'a> {
    begin_ns: u64,
    length_ns: u64,
    task: &'a str,
    limit: Limit,
    order: u8,
    request: Request,
    gfp_flags: &'a str,
    memcg_id: Option<u64>,
    inside: Inside,
    scanned: u64,
    reclaimed: u64,
    kswapd_awake_ns: u64,
}

#[derive(Serialize)]
struct GapJson {
    time_ns: u64,
    what: &'static str,
    told_by: &'static str,
}

impl Answer {
    /// The answer as JSON.
    pub fn json(&self) -> serde_json::Value {
        let account = &self.account;
        let document = Document {
            version: JSON_VERSION,
            heading: &self.heading,
            begin_ns: self.span_ns.map(|(first, _)| first),
            end_ns: self.span_ns.map(|(_, last)| last),
            sentence: &self.sentence,
            found: self.found,
            limit: self.limit(),
            demand: self.demand(),
            traced_ns: account.traced_ns,
            estimated_ns: account.estimated_ns,
            beside_pressure_ns: account.beside_ns,
            pressure_ns: account.pressure_ns,
            kernel_threads_ns: account.threads_ns,
            waiters: self.waiters,
            lost_events: self.lost,
            limits: account.limits.iter().map(limit).collect(),
            causes: account.rows.iter().map(cause).collect(),
            knobs: self.acts.iter().map(knob).collect(),
            useless: self.useless.iter().map(knob).collect(),
            known_faults: self.faults.iter().map(fault).collect(),
            episode_count: self.episode_count,
            episodes: self.episodes.iter().map(episode).collect(),
            watermarks: self.watermarks,
            longest: self.stalls.iter().map(stall).collect(),
            cannot_say: account.gaps.iter().map(gap).collect(),
        };
        // Numbers, texts and names: nothing that JSON cannot hold.
        serde_json::to_value(document).unwrap_or_default()
    }
}

fn limit(row: &LimitRow) -> LimitJson {
    LimitJson {
        limit: row.limit,
        waits: row.waits,
        traced_ns: row.traced_ns,
        estimated_ns: row.estimated_ns,
    }
}

fn cause(row: &Row) -> CauseJson<'_> {
    CauseJson {
        id: row.cause.id,
        name: row.cause.name,
        role: row.cause.role,
        traced_ns: row.finding.traced_ns,
        estimated_ns: row.finding.estimated_ns,
        confidence: row.confidence,
        evidence: &row.finding.evidence,
    }
}

fn knob(knob: &Advised) -> KnobJson {
    KnobJson {
        name: knob.name,
        change: knob.change,
        why: knob.why,
        cause: knob.cause,
    }
}

fn fault(&(fault, version_is_known): &(&'static Fault, bool)) -> FaultJson {
    FaultJson {
        fault,
        version_is_known,
    }
}

fn episode(row: &EpisodeRow) -> EpisodeJson {
    let episode = &row.episode;
    EpisodeJson {
        begin_ns: episode.begin_ns,
        end_ns: episode.end_ns,
        waits: episode.waits,
        tasks: episode.tasks(),
        waited_ns: episode.waited_ns(),
        limit: episode.limit(),
        demand: row.demand,
        free_pages: row.free_pages,
    }
}

fn stall(stall: &Stall) -> StallJson<'_> {
    let wait = &stall.wait;
    StallJson {
        begin_ns: wait.begin_ns,
        length_ns: wait.length_ns(),
        task: &stall.task,
        limit: wait.limit,
        order: wait.order,
        request: wait.request,
        gfp_flags: &stall.gfp,
        memcg_id: wait.memcg,
        inside: wait.inside,
        scanned: wait.scanned,
        reclaimed: wait.reclaimed,
        kswapd_awake_ns: wait.kswapd_ns,
    }
}

fn gap(gap: &Gap) -> GapJson {
    GapJson {
        time_ns: gap.time_ns,
        what: gap.what,
        told_by: gap.told_by,
    }
}

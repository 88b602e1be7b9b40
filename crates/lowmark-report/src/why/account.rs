//! What waits come to: by limit, by demand, by what they went into, and what cannot be said.
//!
//! 1. Each of these is a cut through the same time: limits add up to all of it; demands and what cannot be said too.
//! 2. Traced and estimated time stand beside each other wherever they are added.
//! 3. What is estimated belongs to the limits under which pages were pushed out: to those of traced waits for room in
//!    proportion, to global reclaim if there were none.

use super::cause::{Cause, Confidence, Finding, Role};
use super::causes::CAUSES;
use super::evidence::Evidence;
use super::split::share;
use super::wait::Limit;
use super::words::needs_room;

/// Waits under one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitRow {
    /// The limit.
    pub limit: Limit,
    /// Waits that were traced.
    pub waits: u64,
    /// Their time, ns.
    pub traced_ns: u64,
    /// Estimated time, ns.
    pub estimated_ns: u64,
}

impl LimitRow {
    /// Traced and estimated time, ns.
    pub fn total_ns(&self) -> u64 {
        self.traced_ns.saturating_add(self.estimated_ns)
    }
}

/// A cause that was found.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its declaration.
    pub cause: &'static Cause,
    /// What it came to.
    pub finding: Finding,
    /// How sure that is in this capture.
    pub confidence: Confidence,
}

/// What cannot be said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Traced time that is on nobody's account, ns; 0 where it is no time that is missing.
    pub time_ns: u64,
    /// What cannot be said.
    pub what: &'static str,
    /// The recording that would have told.
    pub told_by: &'static str,
}

/// The account of a capture.
#[derive(Debug, Clone)]
pub struct Account {
    /// Time of waits that were traced, ns, over all tasks.
    pub traced_ns: u64,
    /// Time of waits that are in no event, as pressure has it, ns.
    pub estimated_ns: u64,
    /// Of these, such as pressure of I/O has and pressure of memory has not, ns.
    pub beside_ns: u64,
    /// Pressure of memory, if it is known, ns.
    pub pressure_ns: Option<u64>,
    /// What of it was work of kernel threads and nobody's wait, ns.
    pub threads_ns: u64,
    /// By limit, the longest first; without those of no wait.
    pub limits: Vec<LimitRow>,
    /// Causes, by role and time.
    pub rows: Vec<Row>,
    /// What cannot be said, the longest first.
    pub gaps: Vec<Gap>,
}

impl Account {
    pub(super) fn of(evidence: &Evidence) -> Account {
        let found = CAUSES.iter().filter_map(|cause| {
            let finding = (cause.arithmetic)(evidence)?;
            Some(Row {
                cause,
                finding,
                confidence: confidence(cause, evidence),
            })
        });
        let mut rows: Vec<Row> = found.collect();
        rows.sort_by_key(|row| (row.cause.role, std::cmp::Reverse(row.finding.total_ns())));
        let residual = evidence.residual;
        Account {
            traced_ns: evidence.traced_ns(),
            estimated_ns: residual.map_or(0, |r| r.waits_ns()),
            beside_ns: residual.map_or(0, |r| r.beside_ns),
            pressure_ns: residual.map(|r| r.pressure_ns),
            threads_ns: residual.map_or(0, |r| r.threads_ns),
            limits: limits(evidence),
            gaps: gaps(evidence),
            rows,
        }
    }

    /// Traced and estimated time, ns.
    pub fn total_ns(&self) -> u64 {
        self.traced_ns.saturating_add(self.estimated_ns)
    }

    /// Causes of a role.
    pub fn of_role(&self, role: Role) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.cause.role == role)
    }

    /// What needed most of the room.
    pub fn demand(&self) -> Option<&Row> {
        self.of_role(Role::Demand).next()
    }

    /// What made tasks wait for most of the time.
    pub fn limit(&self) -> Option<Limit> {
        self.limits.first().map(|row| row.limit)
    }
}

/// How sure a cause is in this capture: events are all that a capture without counters has.
fn confidence(cause: &Cause, evidence: &Evidence) -> Confidence {
    match cause.confidence {
        Confidence::Counted if !evidence.surroundings.has_counts() => Confidence::Exact,
        declared => declared,
    }
}

fn limits(evidence: &Evidence) -> Vec<LimitRow> {
    let estimated = evidence.residual.map_or(0, |r| r.waits_ns());
    let room = [
        Limit::Global,
        Limit::Memcg,
        Limit::Node,
        Limit::Fragmentation,
    ];
    let mut weights = room.map(|limit| evidence.limit_ns(limit));
    // Pages are not pushed out for want of a block.
    weights[3] = 0;
    let shares = share(estimated, weights).unwrap_or([estimated, 0, 0, 0]);
    let row = |limit: Limit| {
        let at = room.iter().position(|known| *known == limit);
        LimitRow {
            limit,
            waits: evidence.sums.waits[limit as usize],
            traced_ns: evidence.limit_ns(limit),
            estimated_ns: at.map_or(0, |at| shares[at]),
        }
    };
    let mut rows: Vec<LimitRow> = Limit::ALL.map(row).into();
    rows.retain(|row| row.waits > 0 || row.total_ns() > 0);
    rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns()));
    rows
}

/// A gap, if `is_there`.
fn gap(is_there: bool, time_ns: u64, what: &'static str, told_by: &'static str) -> Option<Gap> {
    is_there.then_some(Gap {
        time_ns,
        what,
        told_by,
    })
}

/// What counters would tell.
const COUNTERS: &str = "/proc/vmstat before and after (--vmstat)";

fn gaps(evidence: &Evidence) -> Vec<Gap> {
    let mut gaps: Vec<Gap> = of_time(evidence)
        .into_iter()
        .chain(of_recordings(evidence))
        .flatten()
        .collect();
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.time_ns));
    gaps
}

/// Time that is on nobody's account, and waits that are not over.
fn of_time(evidence: &Evidence) -> [Option<Gap>; 5] {
    let split = &evidence.split;
    [
        gap(
            split.anon_ns > 0,
            split.anon_ns,
            "whether anonymous memory came back (G1) or is new (G2)",
            COUNTERS,
        ),
        gap(
            split.file_ns > 0,
            split.file_ns,
            "whether pages of files came back (G3) or are new (G4)",
            COUNTERS,
        ),
        gap(
            split.any_ns > 0,
            split.any_ns,
            "what needed the room",
            COUNTERS,
        ),
        gap(
            evidence.sums.open.0 > 0,
            0,
            "how long the waits are that were not over when the capture ended",
            "a longer capture",
        ),
        gap(
            !evidence.has_events,
            0,
            "how long tasks waited in reclaim, and which",
            "events of vmscan, compaction and writeback",
        ),
    ]
}

/// What other recordings would tell.
fn of_recordings(evidence: &Evidence) -> [Option<Gap>; 6] {
    let surroundings = &evidence.surroundings;
    let dirty = evidence.limit_ns(Limit::Dirty) > 0;
    let memcg = evidence.limit_ns(Limit::Memcg) > 0;
    let pages = evidence.room_ns() > 0 || needs_room(evidence);
    [
        gap(
            pages && surroundings.memory_pressure.is_none() && !evidence.is_part,
            0,
            "how long tasks waited for pages that came back (those waits are in no event)",
            "/proc/pressure/memory before and after (--pressure)",
        ),
        gap(
            evidence.is_part,
            0,
            "what pressure and disks say (they are known of the whole capture only)",
            "the capture as a whole",
        ),
        gap(
            surroundings.counters.is_none(),
            0,
            "how many pages came in, and how many of them had been there before",
            COUNTERS,
        ),
        gap(
            dirty && surroundings.disks.is_empty(),
            0,
            "whether the device was busy (D1) or idle in between (D2), other than by its bandwidth",
            "/proc/diskstats before and after (recordings have it)",
        ),
        gap(
            memcg && evidence.count_all("cgroup/", "") == 0,
            0,
            "whether memory.max (M1) or memory.high (M2) is the limit (allocation flags are the same)",
            "memory.events of the group (recordings have it)",
        ),
        gap(
            evidence.demand_known_ns() > 0,
            0,
            "which task owns the pages that take the room",
            "DAMON, or idle page tracking",
        ),
    ]
}

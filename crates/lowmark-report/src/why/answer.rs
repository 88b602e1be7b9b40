//! The answer: the account in one sentence and in rows, the longest waits, episodes, and what would help.

use super::account::{Account, Row};
use super::cause::Role;
use super::episodes::Episode;
use super::evidence::Evidence;
use super::faults::Fault;
use super::sink::WhyReport;
use super::wait::{Limit, Wait};
use super::words;
use lowmark_record::event::gfp;
use lowmark_record::{Account as SourceAccount, Release, Tables};
use std::collections::BTreeSet;

/// Shortest part of all time for which a cause gives advice: a tenth.
const ADVICE_FROM: u64 = 10;

/// Most askers for large blocks that are told.
const ASKERS_SHOWN: usize = 5;

/// A long wait.
#[derive(Debug, Clone)]
pub struct Stall {
    /// Task and process id.
    pub task: String,
    /// The wait.
    pub wait: Wait,
    /// Its allocation flags as text; empty if they are not known.
    pub gfp: String,
}

/// A setting that acts, or one that does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advised {
    /// Its name.
    pub name: &'static str,
    /// What to do with it; empty for one that does not act.
    pub change: &'static str,
    /// What is to be expected, or why it does not act.
    pub why: &'static str,
    /// Id of the cause on which it acts, or does not.
    pub cause: &'static str,
}

/// An episode with what else is known of it.
#[derive(Debug, Clone)]
pub struct EpisodeRow {
    /// The episode.
    pub episode: Episode,
    /// Id of what needed most of the room; none if it cannot be told.
    pub demand: Option<&'static str>,
    /// Free pages when it began, if a series has them.
    pub free_pages: Option<u64>,
}

/// Why tasks waited.
#[derive(Debug, Clone)]
pub struct Answer {
    /// What the capture is of.
    pub heading: Vec<String>,
    /// First and last event, ns by the clock of the trace.
    pub span_ns: Option<(u64, u64)>,
    /// The first sentence.
    pub sentence: String,
    /// Whether anything was found.
    pub found: bool,
    /// The account.
    pub account: Account,
    /// The longest waits.
    pub stalls: Vec<Stall>,
    /// How many episodes there were.
    pub episode_count: usize,
    /// The three with the longest waits.
    pub episodes: Vec<EpisodeRow>,
    /// Watermarks min, low and high of all zones, pages.
    pub watermarks: Option<[u64; 3]>,
    /// Settings that act.
    pub acts: Vec<Advised>,
    /// Settings that do not.
    pub useless: Vec<Advised>,
    /// Known faults, and whether the kernel is known to have each.
    pub faults: Vec<(&'static Fault, bool)>,
    /// Who woke kswapd for costly orders: task, order, flags, how often.
    pub askers: Vec<(String, u8, String, u64)>,
    /// Events that were lost.
    pub lost: u64,
    /// Tasks that waited; 64 may be more.
    pub waiters: usize,
}

impl Answer {
    pub(super) fn new(
        mut report: WhyReport,
        evidence: Evidence,
        tables: &Tables,
        source: &SourceAccount,
    ) -> Answer {
        let account = Account::of(&evidence);
        let faults = Fault::shown(&evidence);
        let (acts, useless) = advice(&evidence, &account);
        let flags = |gfp: Option<u64>| gfp.map_or(String::new(), flags_text);
        let longest = std::mem::take(&mut report.longest);
        let stalls = longest.into_iter().map(|wait| Stall {
            task: report.threads.name(wait.task, tables),
            gfp: flags(wait.gfp),
            wait,
        });
        let stalls = stalls.collect();
        let mut askers: Vec<_> = std::mem::take(&mut report.askers).into_iter().collect();
        askers.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        askers.truncate(ASKERS_SHOWN);
        let askers = askers.into_iter().map(|((task, order, gfp), times)| {
            let name = report.threads.name(task, tables);
            (name, order, flags(Some(gfp).filter(|g| *g > 0)), times)
        });
        let askers = askers.collect();
        let pages_only = !evidence.has_events && words::needs_room(&evidence);
        let answered = account.of_role(Role::Answer).next().is_some();
        Answer {
            heading: evidence.surroundings.heading.clone(),
            span_ns: report.span_ns,
            sentence: words::sentence(&evidence, &account),
            found: account.total_ns() > 0
                || evidence.sums.open.0 > 0
                || answered
                || !faults.is_empty()
                || pages_only,
            stalls,
            episode_count: report.episodes.all().len(),
            episodes: episodes(&report, &evidence),
            watermarks: evidence.surroundings.watermarks,
            acts,
            useless,
            faults,
            askers,
            lost: source.lost,
            waiters: evidence.waiters,
            account,
        }
    }

    /// What made tasks wait for most of the time.
    pub fn limit(&self) -> Option<Limit> {
        self.account.limit()
    }

    /// Id of what needed most of the room.
    pub fn demand(&self) -> Option<&'static str> {
        self.account.demand().map(|row| row.cause.id)
    }
}

/// Allocation flags as 6.18 prints them.
fn flags_text(set: u64) -> String {
    let mut text = Vec::new();
    gfp::render(set, Release::NEWEST, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The three episodes with the longest waits.
fn episodes(report: &WhyReport, evidence: &Evidence) -> Vec<EpisodeRow> {
    let mut all: Vec<&Episode> = report.episodes.all().iter().collect();
    all.sort_by_key(|episode| std::cmp::Reverse(episode.waited_ns()));
    let rows = all.into_iter().take(3).map(|episode| EpisodeRow {
        demand: evidence.demand_of(episode),
        free_pages: evidence
            .surroundings
            .series
            .at("nr_free_pages", episode.begin_ns),
        episode: episode.clone(),
    });
    rows.collect()
}

/// Settings that act on what was found, and such as do not.
fn advice(evidence: &Evidence, account: &Account) -> (Vec<Advised>, Vec<Advised>) {
    let total = account.total_ns();
    let counts = |row: &&Row| {
        let time = row.finding.total_ns();
        let counts = row.cause.role == Role::Answer || time > 0;
        counts && time.saturating_mul(ADVICE_FROM) >= total
    };
    let (mut acts, mut useless): (Vec<Advised>, Vec<Advised>) = (Vec::new(), Vec::new());
    for row in account.rows.iter().filter(counts) {
        for knob in row.cause.knobs {
            let fails = knob.useless.filter(|(test, _)| test(evidence));
            let (list, why) = match fails {
                Some((_, why)) => (&mut useless, why),
                None => (&mut acts, knob.expect),
            };
            if list.iter().all(|known| known.name != knob.name) {
                list.push(Advised {
                    name: knob.name,
                    change: knob.change,
                    why,
                    cause: row.cause.id,
                });
            }
        }
    }
    let acting: BTreeSet<&str> = acts.iter().map(|knob| knob.name).collect();
    useless.retain(|knob| !acting.contains(knob.name));
    (acts, useless)
}

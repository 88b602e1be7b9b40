//! Times and sentences in words.

use super::account::Account;
use super::cause::Role;
use super::evidence::Evidence;
use super::split::Demand;
use super::wait::Limit;
use crate::table::counted;

/// A time in three digits or so: `28.1 s`, `0.35 s`, `14 ms`, `85 us`.
pub(super) fn time(ns: u64) -> String {
    match ns {
        ns if ns >= 100_000_000_000 => format!("{} s", rounded(ns, 1_000_000_000)),
        ns if ns >= 1_000_000_000 => tenths(ns, 1_000_000_000, "s"),
        ns if ns >= 10_000_000 => format!("{} ms", rounded(ns, 1_000_000)),
        ns if ns >= 1_000_000 => tenths(ns, 1_000_000, "ms"),
        ns => format!("{} us", rounded(ns, 1_000)),
    }
}

fn rounded(ns: u64, unit: u64) -> u64 {
    ns / unit + u64::from(ns % unit >= unit / 2)
}

fn tenths(ns: u64, unit: u64, symbol: &str) -> String {
    let tenths = rounded(ns, unit / 10);
    format!("{}.{} {symbol}", tenths / 10, tenths % 10)
}

/// Seconds with three digits behind the point, for tables.
pub(super) fn seconds(ns: u64) -> String {
    let ms = rounded(ns, 1_000_000);
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// A time of the trace, with its microseconds.
pub(super) fn moment(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000)
}

/// `88 %`, to the nearest.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let whole = u128::from(whole.max(1));
    let hundredths = (u128::from(part) * 100 + whole / 2) / whole;
    format!("{hundredths} %")
}

/// The whole of a time in a sentence.
const ALL: &str = "all";

/// `88 %`, or `all`.
fn share_of(part: u64, whole: u64) -> String {
    match percent(part, whole) {
        share if share == "100 %" => ALL.to_owned(),
        share => share,
    }
}

/// The first sentence of an answer.
pub(super) fn sentence(evidence: &Evidence, account: &Account) -> String {
    let total = account.total_ns();
    if total == 0 {
        return without_waits(evidence, account);
    }
    let mut said = format!("Tasks waited {} {}", time(total), purpose(account));
    if account.estimated_ns > 0 {
        let (traced, estimated) = (account.traced_ns, account.estimated_ns);
        said += &format!(" ({} traced, {} estimated)", time(traced), time(estimated));
    }
    let unclear = account.gaps.first().filter(|gap| gap.time_ns > 0);
    let demand = account.demand();
    let demand_ns = demand.map_or(0, |row| row.finding.total_ns());
    match (demand, unclear) {
        (_, Some(gap)) if gap.time_ns > demand_ns => {
            let share = share_of(gap.time_ns, total);
            said += &format!("; for {share} of it the capture does not say {}", gap.what);
        }
        (Some(row), _) => {
            let share = share_of(demand_ns, total);
            said += &format!(
                "; {share} of it because {} ({})",
                row.cause.because, row.cause.id
            );
        }
        (None, _) => {}
    }
    said += ".";
    if let Some(row) = account.limits.first() {
        let share = match share_of(row.total_ns(), total).as_str() {
            ALL => "All".to_owned(),
            share => share.to_owned(),
        };
        said += &format!(" {share} of it was in {}.", waited_in(row.limit));
    }
    let inside = account.of_role(Role::Inside);
    let long = inside.filter(|row| row.finding.total_ns().saturating_mul(4) >= total);
    for row in long {
        let share = share_of(row.finding.total_ns(), total);
        said += &format!(
            " In {share} of it {} ({}).",
            row.cause.because, row.cause.id
        );
    }
    said + &not_over(evidence)
}

/// Waits that had not ended.
fn not_over(evidence: &Evidence) -> String {
    match evidence.sums.open {
        (0, _) => String::new(),
        (1, ns) => format!(
            " One wait had not ended when the capture ended: it had lasted {} by then.",
            time(ns)
        ),
        (number, ns) => format!(
            " {number} waits had not ended when the capture ended: together they had lasted {} by then.",
            time(ns)
        ),
    }
}

fn purpose(account: &Account) -> &'static str {
    match account.limit() {
        Some(Limit::Dirty) => "to write files",
        _ => "for memory",
    }
}

fn waited_in(limit: Limit) -> &'static str {
    match limit {
        Limit::Global => "reclaim for the machine",
        Limit::Memcg => "reclaim for the limit of a memory cgroup",
        Limit::Node => "reclaim of one node",
        Limit::Dirty => "pauses of writers at the dirty limits",
        Limit::Fragmentation => "compaction and reclaim for large blocks",
    }
}

/// What is said where no time is known.
fn without_waits(evidence: &Evidence, account: &Account) -> String {
    if let Some(row) = account.of_role(Role::Answer).next() {
        let evidence = &row.finding.evidence;
        return format!(
            "No wait for memory was seen, but {} ({}): {evidence}.",
            row.cause.because, row.cause.id
        );
    }
    if !evidence.has_events && needs_room(evidence) {
        let inflow = evidence.inflow();
        let demands = [
            Demand::AnonBack,
            Demand::AnonNew,
            Demand::FileBack,
            Demand::FileNew,
        ];
        let parts = inflow.parts();
        let most = demands
            .into_iter()
            .max_by_key(|d| (parts[*d as usize], 4 - *d as usize));
        let what = match most.unwrap_or(Demand::AnonBack) {
            Demand::AnonBack => "anonymous memory that came back (G1)",
            Demand::AnonNew => "new anonymous memory (G2)",
            Demand::FileBack => "pages of files that came back (G3)",
            Demand::FileNew => "pages of files that were used once (G4)",
        };
        let all = parts
            .iter()
            .fold(0u64, |sum, part| sum.saturating_add(*part));
        let most = parts.into_iter().max().unwrap_or(0);
        let stalls = evidence.count_all("allocstall", "");
        return format!(
            "Tasks reclaimed themselves {}; {} of the pages that needed room were {what}. How long tasks \
             waited, counters do not say.",
            counted(stalls, "time"),
            percent(most, all)
        );
    }
    let threads = match account.threads_ns {
        0 => String::new(),
        ns => format!(" (pressure of {} is work of kernel threads)", time(ns)),
    };
    let nothing = format!(
        "Nothing found: no task waited for memory in {}{threads}.",
        time(evidence.span_ns)
    );
    match evidence.sums.open.0 {
        0 => nothing,
        _ => format!("No wait for memory came to its end.{}", not_over(evidence)),
    }
}

/// Whether counters say that room had to be made.
pub(super) fn needs_room(evidence: &Evidence) -> bool {
    evidence.inflow().stolen > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let shown = [
            0,
            1_499,
            9_949_000,
            14_400_000,
            350_000_000,
            28_060_000_000,
            123_000_000_000,
        ];
        let shown = shown.map(time);
        let expected = [
            "0 us", "1 us", "9.9 ms", "14 ms", "350 ms", "28.1 s", "123 s",
        ];
        assert_eq!(shown, expected);
        assert_eq!(seconds(1_234_500_000), "1.235");
        assert_eq!(moment(4_057_015_999), "4.057015");
        assert_eq!(percent(7, 8), "88 %");
        assert_eq!(percent(u64::MAX, u64::MAX), "100 %");
        assert_eq!(percent(1, 0), "100 %");
    }
}

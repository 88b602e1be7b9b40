//! What goes on, in a sentence or two.

use crate::look::Look;
use crate::rates::{Rate, Rates};

/// What memory management is about, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Nothing is reclaimed.
    Rest,
    /// kswapd reclaims, and no task has to.
    Background,
    /// Tasks reclaim or compact memory for themselves, or wait for it.
    Stalls,
}

/// What goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// What it comes to.
    pub state: State,
    /// Sentences.
    pub text: String,
}

/// Share of the pages reclaimed that are read again from which on they are needed.
const NEEDED: f64 = 0.25;
/// Share of the pages scanned that are reclaimed below which scanning is said to give little.
const LITTLE: f64 = 0.25;
/// Share of the time in which tasks wait from which on it is said, percent.
const WAITS: f64 = 1.0;

/// What goes on at a look, from how fast things were counted before it.
pub fn story(look: &Look, rates: &Rates) -> Story {
    let mut story = Story {
        state: State::Rest,
        text: String::new(),
    };
    who_reclaims(rates, &mut story);
    how_well(rates, &mut story);
    who_waits(rates, &mut story);
    for group in &look.groups {
        if let Some(max) = group.max.filter(|&max| group.current >= max / 64 * 63) {
            let (name, mib) = (group.short(), max >> 20);
            story.say(format!("{name} is at its limit of {mib} MiB."));
        }
    }
    story
}

impl Story {
    /// One more sentence.
    fn say(&mut self, sentence: impl AsRef<str>) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(sentence.as_ref());
    }

    /// One more sentence, on something that makes tasks wait.
    fn say_of_stalls(&mut self, sentence: impl AsRef<str>) {
        self.state = State::Stalls;
        self.say(sentence);
    }
}

fn who_reclaims(rates: &Rates, story: &mut Story) {
    let does = |rate| rates.of(rate) > 0.0;
    let (kswapd, for_groups) = (does(Rate::KswapdScan), does(Rate::GroupScan));
    if does(Rate::DirectScan) || does(Rate::DirectStall) {
        let often = if does(Rate::DirectStall) {
            format!(", {} times a second,", count(rates.of(Rate::DirectStall)))
        } else {
            String::new()
        };
        let kswapd = if kswapd {
            "beside kswapd"
        } else {
            "while kswapd does not"
        };
        story.say_of_stalls(format!("Tasks reclaim memory themselves{often} {kswapd}."));
    } else if kswapd {
        story.state = State::Background;
        story.say(if for_groups {
            "kswapd reclaims memory."
        } else {
            "kswapd reclaims memory, and no task has to."
        });
    } else if !for_groups {
        story.say("Nothing is reclaimed.");
    }
    if for_groups {
        story.say_of_stalls("Tasks reclaim memory for the limit of a cgroup.");
    }
}

fn how_well(rates: &Rates, story: &mut Story) {
    let sum = |of: [Rate; 3]| of.map(|rate| rates.of(rate)).iter().sum::<f64>();
    let reclaimed = sum([Rate::KswapdSteal, Rate::DirectSteal, Rate::GroupSteal]);
    let scanned = sum([Rate::KswapdScan, Rate::DirectScan, Rate::GroupScan]);
    let back = rates.of(Rate::Refault);
    if scanned > 0.0 && reclaimed < LITTLE * scanned {
        let percent = (100.0 * reclaimed / scanned).floor();
        story.say(format!("Of 100 pages scanned {percent:.0} are reclaimed."));
    }
    if reclaimed > 0.0 && back >= NEEDED * reclaimed {
        let percent = (100.0 * back / reclaimed).min(100.0);
        story.say(format!(
            "For 100 pages that are reclaimed {percent:.0} come back: memory is too small for what is in use."
        ));
    }
}

fn who_waits(rates: &Rates, story: &mut Story) {
    let compacts = rates.of(Rate::CompactStall);
    if compacts > 0.0 {
        let often = count(compacts);
        story.say_of_stalls(format!("Tasks compact memory, {often} times a second."));
    }
    let percent = rates.of(Rate::SomeWait);
    if percent >= WAITS {
        story.say_of_stalls(format!(
            "Some task waits for memory {percent:.0} % of the time."
        ));
    }
}

/// A rate in a sentence.
fn count(value: f64) -> String {
    match value {
        0.0..10.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::Fields;
    use lowmark_record::vmstat;

    /// What is said of a second in which this was counted.
    fn said(counted: &[(&str, u64)]) -> (State, String) {
        let names = counted.iter().map(|(name, _)| (*name).to_owned());
        let before = names.clone().map(|name| (name, 0));
        let after = names.zip(counted.iter().map(|(_, value)| *value));
        let look = |time_ns, fields: Fields| Look::new(time_ns, [(vmstat::FILE, fields)]);
        let (before, after) = (look(0, before.collect()), look(1, after.collect()));
        let rates = Rates::between(&before.totals, &after.totals, 1_000_000_000);
        let story = story(&after, &rates);
        (story.state, story.text)
    }

    #[test]
    fn each_state_has_its_sentence() {
        assert_eq!(said(&[]), (State::Rest, "Nothing is reclaimed.".into()));
        let kswapd = [("pgscan_kswapd", 100), ("pgsteal_kswapd", 90)];
        let (state, text) = said(&kswapd);
        assert_eq!(state, State::Background);
        assert_eq!(text, "kswapd reclaims memory, and no task has to.");
        let (state, text) = said(&[
            ("pgscan_kswapd", 100),
            ("pgsteal_kswapd", 7),
            ("pgscan_direct", 100),
            ("pgsteal_direct", 3),
            ("allocstall", 4),
            ("workingset_refault_anon", 5),
            ("workingset_refault_file", 1),
        ]);
        assert_eq!(state, State::Stalls);
        assert_eq!(
            text,
            "Tasks reclaim memory themselves, 4.0 times a second, beside kswapd. Of 100 pages scanned 5 are \
             reclaimed. For 100 pages that are reclaimed 60 come back: memory is too small for what is in use."
        );
        let (state, text) = said(&[
            ("pgscan_kswapd", 10),
            ("pgscan_anon", 30),
            ("pgscan_file", 10),
            ("pgsteal_kswapd", 10),
            ("pgsteal_anon", 30),
        ]);
        assert_eq!(state, State::Stalls);
        assert_eq!(
            text,
            "kswapd reclaims memory. Tasks reclaim memory for the limit of a cgroup."
        );
    }
}

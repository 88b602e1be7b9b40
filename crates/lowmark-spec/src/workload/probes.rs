//! What a `probe` asks, and the series that its answer makes of the sample around it.

use serde::{Deserialize, Serialize};

/// What a `probe` asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// Is the page resident (mincore)?
    Resident,
    /// Is it part of a huge page?
    Huge,
}

/// What a `probe` found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A page of its own, or none.
    Base,
    /// A part of a huge page.
    Huge,
    /// Not resident.
    Absent,
    /// Resident.
    Resident,
}

impl Answer {
    const ALL: [Answer; 4] = [Answer::Base, Answer::Huge, Answer::Absent, Answer::Resident];

    /// The answer to what was asked.
    pub fn to(asked: Probe, yes: bool) -> Answer {
        match (asked, yes) {
            (Probe::Huge, false) => Answer::Base,
            (Probe::Huge, true) => Answer::Huge,
            (Probe::Resident, false) => Answer::Absent,
            (Probe::Resident, true) => Answer::Resident,
        }
    }

    /// What it adds to the name of the series.
    pub fn suffix(self) -> &'static str {
        match self {
            Answer::Base => "-base",
            Answer::Huge => "-huge",
            Answer::Absent => "-absent",
            Answer::Resident => "-resident",
        }
    }
}

/// Numbers that each series has: one without an answer, and one for each answer.
const NUMBERS: u64 = 1 + Answer::ALL.len() as u64;

/// The number of the samples of a series with the answer of the last probe in them.
pub fn series_number(series: usize, answer: Option<Answer>) -> u64 {
    series as u64 * NUMBERS + answer.map_or(0, |answer| 1 + answer as u64)
}

/// The series of a number, and what the answer adds to its name.
pub fn series_name(number: u64) -> (usize, &'static str) {
    let answer = (number % NUMBERS)
        .checked_sub(1)
        .map_or("", |at| Answer::ALL[at as usize].suffix());
    let series = usize::try_from(number / NUMBERS).unwrap_or(usize::MAX);
    (series, answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_has_a_series_of_its_own() {
        for series in [0, 1, 7] {
            assert_eq!(series_name(series_number(series, None)), (series, ""));
            for answer in Answer::ALL {
                let number = series_number(series, Some(answer));
                assert_eq!(series_name(number), (series, answer.suffix()));
            }
        }
    }
}

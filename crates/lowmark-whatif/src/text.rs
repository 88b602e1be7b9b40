//! The answer as text and for programs.

use crate::answer::{Answer, Reconstructed, thousandths};
use crate::candidate::Candidate;
use crate::counters::COUNTERS;
use crate::loss::LOSS_ROUGH;
use crate::row::{Row, Verdict};
use lowmark_report::document::Section;
use lowmark_report::table::{Align, TextTable, counted};
use serde::Serialize;

/// The answer, for programs.
#[derive(Debug, Serialize)]
pub struct Written<'a> {
    version: u32,
    question: &'a str,
    #[serde(flatten)]
    load: WrittenLoad,
    rows: &'a [Row],
}

/// A load, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct WrittenLoad {
    pages: u64,
    runs: usize,
    rough: bool,
    reconstructions: Vec<Reconstruction>,
}

#[derive(Debug, Serialize)]
struct Reconstruction {
    #[serde(flatten)]
    load: Candidate,
    /// Millionths.
    loss: u64,
}

impl Reconstructed {
    /// It fits, but not well.
    pub fn is_rough(&self) -> bool {
        self.fit.kept.first().is_some_and(|it| it.loss > LOSS_ROUGH)
    }

    pub(crate) fn written(&self) -> WrittenLoad {
        let kept = self.fit.kept.iter();
        WrittenLoad {
            pages: self.demand.pages,
            runs: self.fit.runs,
            rough: self.is_rough(),
            reconstructions: kept
                .map(|fitted| Reconstruction {
                    load: fitted.candidate,
                    loss: fitted.loss,
                })
                .collect(),
        }
    }

    /// Which loads fit, and how well.
    pub(crate) fn describe(&self, section: &mut Section<'_>) {
        let Some(best) = self.fit.kept.first() else {
            return;
        };
        let others = match self.fit.kept.len() - 1 {
            0 => "No other load that was tried fits".to_owned(),
            1 => "Another one fits".to_owned(),
            others => format!("{others} others fit"),
        };
        let load = best.candidate.describe();
        section.paragraph(format!("Load: {load}. {others} about as well."), 0);
        section.paragraph(self.check(), 0);
    }

    /// What the best reconstruction does with the setting as it was.
    fn check(&self) -> String {
        let Some(best) = self.fit.kept.first() else {
            return String::new();
        };
        let figures = COUNTERS.iter().zip(best.figures.0).zip(self.seen.0);
        let known = figures.filter_map(|((counter, model), seen)| {
            let (model, seen) = (model?, seen?);
            (seen.max(model) > counter.floor).then(|| format!("{} {seen}: {model}", counter.name))
        });
        let known: Vec<String> = known.collect();
        format!(
            "Check, recorded and on the model with the setting as it was: {}. Loss {}{}.",
            known.join(", "),
            thousandths(best.loss),
            if self.is_rough() { ", rough" } else { "" }
        )
    }
}

impl Answer {
    /// The answer to a question in words, for programs.
    pub fn written<'a>(&'a self, question: &'a str) -> Written<'a> {
        Written {
            version: 1,
            question,
            load: self.load.written(),
            rows: &self.rows,
        }
    }

    /// The answer to a question in words.
    pub fn section(&self, question: &str) -> Section<'static> {
        let mut section = Section::new();
        let sentence = self.sentence(question);
        section.paragraph(sentence.clone(), 0);
        section.answer(sentence);
        section.blank();
        self.load.describe(&mut section);
        section.blank();
        let mut table = TextTable::new().column("", Align::Left);
        for heading in ["was", "would be", "from", "to"] {
            table = table.column(heading, Align::Right);
        }
        table = table.column("", Align::Left);
        for row in &self.rows {
            table.row(fields(row));
        }
        section.table(table);
        section
            .line("Times are not answered: what work costs on the recorded machine is not known.");
        section
    }

    /// What is most worth saying.
    fn sentence(&self, question: &str) -> String {
        let moving: Vec<String> = self
            .rows
            .iter()
            .filter(|row| row.moves())
            .take(4)
            .map(|row| {
                let way = if row.would_be > row.was {
                    "more"
                } else {
                    "fewer"
                };
                match row.verdict {
                    Verdict::Number => format!("{} {} for {}", row.name, row.would_be, row.was),
                    Verdict::Range => {
                        format!("{} {} to {} for {}", row.name, row.least, row.most, row.was)
                    }
                    _ => format!("{way} {}", row.name),
                }
            })
            .collect();
        let same = self
            .rows
            .iter()
            .filter(|row| row.verdict == Verdict::NoChange);
        let same = counted(same.count() as u64, "counter");
        if moving.is_empty() {
            return format!(
                "With {question} nothing that can be told would change: {same} as before."
            );
        }
        format!("With {question}: {}; {same} as before.", moving.join(", "))
    }
}

fn fields(row: &Row) -> Vec<String> {
    let numbers = match row.verdict {
        Verdict::Off { .. } | Verdict::OtherKernel => [const { String::new() }; 3],
        Verdict::CannotSay | Verdict::Range | Verdict::Direction | Verdict::Begins => {
            [String::new(), row.least.to_string(), row.most.to_string()]
        }
        Verdict::NoChange | Verdict::Number => {
            [row.would_be, row.least, row.most].map(|it| it.to_string())
        }
    };
    let said = match row.verdict {
        Verdict::NoChange => "no change".to_owned(),
        Verdict::Number => "yes".to_owned(),
        Verdict::Range => "which way; how far depends on the load".to_owned(),
        Verdict::Direction => "which way alone: kernels do not repeat it".to_owned(),
        Verdict::Begins => "it would begin".to_owned(),
        Verdict::CannotSay => "cannot say: loads that fit go either way".to_owned(),
        Verdict::Off { model } => format!("not answered: {model} on the model as it was"),
        Verdict::OtherKernel => "not answered across kernels".to_owned(),
    };
    let [would_be, least, most] = numbers;
    vec![
        row.name.to_owned(),
        row.was.to_string(),
        would_be,
        least,
        most,
        said,
    ]
}

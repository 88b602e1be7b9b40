//! Several questions about one load, side by side.

use crate::answer::Reconstructed;
use crate::refusal::Refusal;
use crate::row::{Row, Verdict};
use crate::text::WrittenLoad;
use lowmark_report::document::Section;
use lowmark_report::table::{Align, TextTable};
use serde::Serialize;

/// Counters that have a column, if anything is said of them.
const COLUMNS: [&str; 7] = [
    "pswpin",
    "pswpout",
    "pgmajfault",
    "pgsteal",
    "pgscan",
    "pgscan_direct",
    "allocstall",
];

/// Loads that fit are further apart than this, percent of what was, where the least and the most are shown.
const APART: i128 = 10;

/// A question with its answer.
#[derive(Debug)]
pub struct Asked {
    /// What would be otherwise, `page_cluster = 0`.
    pub question: String,
    /// More memory, and no other setting.
    pub is_memory: bool,
    /// What would have been of each counter, or why that is not answered.
    pub rows: Result<Vec<Row>, Refusal>,
}

/// A load, and what several settings would have done to it.
#[derive(Debug)]
pub struct Knobs {
    /// The load.
    pub load: Reconstructed,
    /// The questions, of each setting those with less of it first.
    pub asked: Vec<Asked>,
}

/// The same for programs.
#[derive(Debug, Serialize)]
pub struct WrittenKnobs<'a> {
    version: u32,
    #[serde(flatten)]
    load: WrittenLoad,
    questions: Vec<WrittenAsked<'a>>,
}

#[derive(Debug, Serialize)]
struct WrittenAsked<'a> {
    question: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<&'a [Row]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instead: Option<&'a str>,
}

impl Asked {
    /// What is said of a counter.
    fn row(&self, name: &str) -> Option<&Row> {
        let rows = self.rows.as_ref().ok()?;
        rows.iter().find(|row| row.name == name)
    }

    /// The row of a counter that would be lower with every load that fits.
    fn lowers(&self, name: &str) -> Option<&Row> {
        self.row(name)
            .filter(|row| row.moves() && row.most < row.was)
    }
}

impl Knobs {
    /// Whether any question is answered.
    pub fn is_answered(&self) -> bool {
        self.asked.iter().any(|asked| asked.rows.is_ok())
    }

    /// What settings would have done, for programs.
    pub fn written(&self) -> WrittenKnobs<'_> {
        let questions = self.asked.iter().map(|asked| {
            let refused = asked.rows.as_ref().err();
            WrittenAsked {
                question: &asked.question,
                rows: asked.rows.as_deref().ok(),
                refused: refused.map(|refusal| refusal.because.as_str()),
                instead: refused.map(|refusal| refusal.instead.as_str()),
            }
        });
        WrittenKnobs {
            version: 1,
            load: self.load.written(),
            questions: questions.collect(),
        }
    }

    /// What settings would have done, in words.
    pub fn section(&self) -> Section<'static> {
        let mut section = Section::new();
        let sentence = self.sentence();
        section.paragraph(sentence.clone(), 0);
        section.answer(sentence);
        section.blank();
        self.load.describe(&mut section);
        section.blank();
        section.table(self.table());
        section.line("Changes in percent; = no change; fewer, more: which way alone; begins: there was none;");
        section.line("? loads that fit go either way; - not answered, as the model is off with the setting as it was.");
        for asked in &self.asked {
            if let Err(refusal) = &asked.rows {
                let text = format!("Not answered with {}: {}.", asked.question, refusal.because);
                section.paragraph(text, 0);
            }
        }
        section
    }

    fn table(&self) -> TextTable {
        let columns = COLUMNS.iter().copied();
        let columns =
            columns.filter(|name| self.asked.iter().any(|asked| asked.row(name).is_some()));
        let columns: Vec<&str> = columns.collect();
        let mut table = TextTable::new().column("", Align::Left);
        for name in &columns {
            table = table.column(*name, Align::Right);
        }
        let first = |name: &str| self.asked.iter().find_map(|asked| asked.row(name));
        let was = columns
            .iter()
            .map(|name| first(name).map_or(0, |row| row.was));
        let was = was.map(|was| was.to_string());
        table.row(std::iter::once("as it was".to_owned()).chain(was));
        for asked in self.asked.iter().filter(|asked| asked.rows.is_ok()) {
            let cells = columns
                .iter()
                .map(|name| asked.row(name).map_or(String::new(), cell));
            table.row(std::iter::once(asked.question.clone()).chain(cells));
        }
        table
    }

    /// Which settings lower what is swapped in and stalls, and how much more memory halves the former.
    fn sentence(&self) -> String {
        let mut said = Vec::new();
        for (name, what) in [("pswpin", "pages swapped in"), ("allocstall", "stalls")] {
            said.extend(self.lowered(name, what));
        }
        let memory = || self.asked.iter().filter(|asked| asked.is_memory);
        let halves = |asked: &&Asked| {
            let row = asked.lowers("pswpin");
            row.is_some_and(|row| row.most * 2 <= row.was)
        };
        // No load that fits is brought to a half.
        let does_not = |asked: &&Asked| {
            let row = asked.row("pswpin").filter(|row| row.says());
            row.is_some_and(|row| row.least * 2 > row.was)
        };
        if let Some(asked) = memory().find(halves) {
            said.push(format!(
                "{} halves the number of pages swapped in.",
                asked.question
            ));
        } else if let Some(most) = memory().next_back().filter(does_not) {
            said.push(format!(
                "Not even {} halves the number of pages swapped in.",
                most.question
            ));
        }
        if said.is_empty() {
            said.push("Nothing is said of pages swapped in or of stalls.".to_owned());
        }
        said.join(" ")
    }

    /// The settings that lower a counter. They are ranked where each has a number; where only the way is known, all are named.
    fn lowered(&self, name: &str, what: &str) -> Option<String> {
        let settings = self.asked.iter().filter(|asked| !asked.is_memory);
        let lowering = settings.filter_map(|asked| Some((asked, asked.lowers(name)?)));
        let lowering: Vec<(&Asked, &Row)> = lowering.collect();
        let is_number = |(_, row): &(&Asked, &Row)| row.verdict == Verdict::Number;
        match lowering.iter().min_by_key(|(_, row)| row.would_be) {
            None => self
                .is_said(name)
                .then(|| format!("None of the settings lowers the number of {what}.")),
            Some((asked, row)) if lowering.iter().all(is_number) => Some(format!(
                "Of the settings, {} lowers the number of {what} most: {} for {}.",
                asked.question, row.would_be, row.was
            )),
            Some(_) => {
                let names = lowering.iter().map(|(asked, _)| asked.question.as_str());
                let names = names.collect::<Vec<_>>().join("; ");
                Some(format!(
                    "Settings that lower the number of {what}: {names}."
                ))
            }
        }
    }

    /// Whether a setting's answer says anything of a counter.
    fn is_said(&self, name: &str) -> bool {
        let settings = self.asked.iter().filter(|asked| !asked.is_memory);
        let mut rows = settings.filter_map(|asked| asked.row(name));
        rows.any(Row::says)
    }
}

/// What is said of a counter, in a word.
fn cell(row: &Row) -> String {
    let way = if row.would_be < row.was {
        "fewer"
    } else {
        "more"
    };
    match row.verdict {
        Verdict::NoChange => "=".to_owned(),
        Verdict::Number => {
            let was = i128::from(row.was);
            let percent = |it: u64| (i128::from(it) - was) * 100 / was.max(1);
            match (percent(row.least), percent(row.most)) {
                (least, most) if most - least > APART => format!("{least:+}..{most:+}%"),
                _ => format!("{:+}%", percent(row.would_be)),
            }
        }
        Verdict::Range | Verdict::Direction => way.to_owned(),
        Verdict::Begins => "begins".to_owned(),
        Verdict::CannotSay => "?".to_owned(),
        Verdict::Off { .. } | Verdict::OtherKernel => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_says_what_its_row_does() {
        let row = |was, [least, would_be, most]: [u64; 3], verdict| Row {
            name: "pswpin",
            was,
            would_be,
            least,
            most,
            verdict,
        };
        let cells = [
            (row(200, [90, 100, 105], Verdict::Number), "-50%"),
            (row(200, [90, 100, 130], Verdict::Number), "-55..-35%"),
            (row(200, [240, 250, 250], Verdict::Number), "+25%"),
            (row(200, [190, 200, 205], Verdict::NoChange), "="),
            (row(200, [10, 100, 150], Verdict::Range), "fewer"),
            (row(200, [300, 400, 900], Verdict::Direction), "more"),
            (row(0, [300, 400, 900], Verdict::Begins), "begins"),
            (row(200, [100, 200, 300], Verdict::CannotSay), "?"),
            (row(200, [0, 0, 0], Verdict::Off { model: 9 }), "-"),
        ];
        for (row, text) in cells {
            assert_eq!(cell(&row), text, "{row:?}");
        }
    }
}

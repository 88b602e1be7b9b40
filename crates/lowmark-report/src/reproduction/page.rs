//! A reproduction as a page of the documentation.
//!
//! A page holds no time, no date and no version, so that the same evaluation gives the same bytes as long as neither
//! the model nor its files change.

use super::text::{error_text, evidence};
use super::{ClaimResult, MachineUsed, Reproduction, Verdict};
use crate::recipe::{Compare, DEFAULT_VARIANT};
use crate::table::PlainStyle;

/// Digits of a commit that are shown.
const COMMIT_DIGITS: usize = 12;

impl Reproduction {
    /// The page; what is written by a program says so in `mark`, a line of its own.
    pub fn page(&self, mark: &str) -> String {
        let mut text = format!(
            "{mark}\n# {}: {}\n\n",
            self.evaluation.id, self.evaluation.title
        );
        text += &self.command();
        text += &self.source();
        for note in &self.notes {
            text += &format!("- {note}\n");
        }
        if !self.notes.is_empty() {
            text += "\n";
        }
        text += &self.machines_section();
        text += &self.figures_section();
        text += &claims_section("Claims", &self.claims);
        text += &claims_section("Other figures in prose", &self.figures);
        let title = "Claims about kernels outside the tables";
        text += &claims_section(title, &self.additional_claims);
        text + &self.summary_section()
    }

    fn command(&self) -> String {
        let id = &self.evaluation.id;
        let default = |variant: &&crate::recipe::Variant| variant.name != DEFAULT_VARIANT;
        let flag = self.variant.as_ref().filter(default);
        let flag = flag.map_or(String::new(), |v| format!(" --variant {}", v.name));
        let title = self.variant.as_ref().map_or("", |v| v.title.as_str());
        let colon = if title.is_empty() { "" } else { ": " };
        format!("`lowmark reproduce {id}{flag}`{colon}{title}.\n\n")
    }

    /// Where the figures were printed.
    fn source(&self) -> String {
        let part = |key: &str| self.evaluation.source.get(key);
        let commit = part("commit").map(|commit| {
            let short = commit.get(..COMMIT_DIGITS).unwrap_or(commit);
            format!("commit {short}")
        });
        let parts = [commit, part("subject").cloned(), part("author").cloned()];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            String::new()
        } else {
            format!("Published: {}.\n\n", parts.join(", "))
        }
    }

    fn machines_section(&self) -> String {
        if self.machines.is_empty() {
            return String::new();
        }
        let mut text = "## Machines\n\n".to_owned();
        for MachineUsed { name, description } in &self.machines {
            text += &format!("- `{name}`: {description}.\n");
            let own: Vec<String> = self
                .fitted
                .iter()
                .filter(|fitted| fitted.machine == *name)
                .map(|f| format!("`{}` to {}", f.constant, code(&f.to.join(", "))))
                .collect();
            text += &if own.is_empty() {
                "  Nothing of it was fitted to these figures.\n".to_owned()
            } else {
                format!("  Fitted to these figures: {}.\n", own.join("; "))
            };
        }
        text + "\n"
    }

    fn figures_section(&self) -> String {
        let tables = self.tables();
        if tables.is_empty() {
            return String::new();
        }
        let mut text = "## Figures\n\n".to_owned();
        for table in tables {
            let table = table.text(&PlainStyle, None);
            text += &format!("```\n{}\n```\n\n", table.trim_end());
        }
        text
    }

    fn summary_section(&self) -> String {
        let mut text = "## Summary\n\n".to_owned();
        let summary = &self.summary;
        if !self.evaluation.tables.is_empty() {
            text += &format!(
                "- Figures: {} of {} modelled",
                summary.modelled, summary.cells
            );
            text += &match self.compare {
                Compare::Values => format!("; {}.\n", error_text(summary.cell_errors.as_ref())),
                Compare::Ratios => "; absolute figures are not compared.\n".to_owned(),
            };
            let ratios = error_text(summary.ratio_errors.as_ref());
            text += &format!("- Ratios to the first column: {ratios}.\n");
        }
        if !self.is_judged() {
            return text + "- Claims are not judged by this variant.\n";
        }
        for (name, counts) in self.claim_counts() {
            let name = match name {
                "claims" => "Claims",
                "figures" => "Other figures in prose",
                _ => "Claims about kernels outside the tables",
            };
            text += &format!("- {name}: {counts}.\n");
        }
        text
    }
}

/// A section with a paragraph for each claim; none without claims.
fn claims_section(title: &str, claims: &[ClaimResult]) -> String {
    if claims.is_empty() {
        return String::new();
    }
    let mut text = format!("## {title}\n\n");
    for claim in claims {
        let verdict = match claim.verdict {
            Verdict::BorneOut => "borne out",
            Verdict::Contradicted => "contradicted",
            Verdict::Vacuous => "vacuous",
            Verdict::NotCounted => "not counted",
            Verdict::NotModelled => "not modelled",
        };
        text += &format!("- **{verdict}**: {}\n", claim.text);
        for (name, content) in evidence(claim, &code) {
            text += &format!("  - {name}: {content}\n");
        }
    }
    text + "\n"
}

/// Numbers and names of cells, in which no character means anything to Markdown.
fn code(text: &str) -> String {
    format!("`{text}`")
}

//! Recipes: how a published evaluation is run.
//!
//! A published table names kernels and tests in the words of its author. The recipe of the same name
//! under `evaluations/` says what they are here: the workload, the machine of each table, the kernel of
//! each column, the parameters of each row, and which figure of a run is the cell. What a recipe does
//! not mention is not run, and claims about it stay undecided.
//!
//! Parameters may be set at four places. The more particular one wins: table, then column, then row,
//! and the variant over all of them, because a variant is what somebody asked for.

mod embedded;
mod evidence;
mod metric;
mod raw;

use crate::cell::CellId;
use crate::claim::{Claim, ClaimError};
use crate::evaluation::{Evaluation, ProseFigure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

pub use embedded::{get, ids};
pub use evidence::{Evidence, Watch};
pub use metric::{DEVICE, Grouped, IO, LIST_LOCK, Measure, Metric, Of};

/// Parameters of a workload by name, as text.
pub type Settings = BTreeMap<String, String>;

/// Name of the variant that runs unless another is asked for.
pub const DEFAULT_VARIANT: &str = "default";

/// What of the published figures a model can be held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compare {
    /// The figures themselves and their ratios.
    #[default]
    Values,
    /// Only ratios to the baseline: the source does not say on what machine it measured.
    Ratios,
}

/// A way to run the evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// Name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Parameters.
    pub set: Settings,
    /// Whether its figures decide claims; those of a run that is too short for them do not.
    pub judged: bool,
}

/// A column of the published tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipeColumn {
    /// Id of the column.
    pub id: String,
    /// Kernel.
    pub kernel: String,
    /// Parameters.
    pub set: Settings,
}

/// A kernel that the source speaks of without printing figures, with what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct Extra {
    /// Name of its column in cells.
    pub id: String,
    /// Kernel.
    pub kernel: String,
    /// Parameters.
    pub set: Settings,
    /// What the source says.
    pub text: String,
    /// How that is judged; its cells are those that are run for this kernel.
    pub claim: Claim,
    /// Remark.
    pub note: Option<String>,
}

/// A published table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipeTable {
    /// Id of the table.
    pub id: String,
    /// Heading, of a table that is not in print.
    pub title: Option<String>,
    /// Workload, if not that of the recipe.
    pub workload: Option<String>,
    /// Machine.
    pub machine: String,
    /// Parameters.
    pub set: Settings,
    /// Its rows, if the table is not in print and does not have all of them.
    pub rows: Vec<String>,
    /// What of a run its cells are, unless a row says otherwise. A printed table with one has all of its rows.
    pub metric: Option<Metric>,
}

/// A row of the published tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipeRow {
    /// Name of the row.
    pub id: String,
    /// Parameters.
    pub set: Settings,
    /// What of a run the cell is, if not what the recipe says for all.
    pub metric: Option<Metric>,
}

/// How a figure that the source states in prose is judged.
#[derive(Debug, Clone, PartialEq)]
pub struct ProseTest {
    /// Id of the figure in the evaluation.
    pub id: String,
    /// What is measured.
    pub measured: Measured,
    /// Remark.
    pub note: Option<String>,
}

/// What of the recipe's tables stands for a figure in prose.
#[derive(Debug, Clone, PartialEq)]
pub enum Measured {
    /// Two cells, for a figure that states a change: the rule of the published figures judges them.
    Change {
        /// Before the change.
        before: CellId,
        /// After it.
        after: CellId,
    },
    /// An expression, for a figure that states a value.
    Value(Claim),
    /// Nothing, and why.
    Nothing(String),
}

impl ProseTest {
    /// The claim by which this figure is judged; none if it is not measured, or if its kind is another one.
    pub fn claim(&self, figure: &ProseFigure) -> Option<Claim> {
        match (&self.measured, figure.change()) {
            (Measured::Value(claim), None) => Some(claim.clone()),
            (Measured::Change { before, after }, Some(change)) => {
                let (least, most) = change.bounds();
                let text = format!("{least:.4} <= {after} / {before} <= {most:.4}");
                Claim::parse(&text).ok()
            }
            _ => None,
        }
    }

    /// Why it is not measured.
    pub fn reason(&self) -> Option<&str> {
        match &self.measured {
            Measured::Nothing(reason) => Some(reason),
            Measured::Change { .. } | Measured::Value(_) => None,
        }
    }
}

/// How an evaluation is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// Its file, as errors name it.
    pub file: String,
    /// Id of the evaluation.
    pub evaluation: String,
    /// Workload, a file under `workloads/`.
    pub workload: String,
    /// What of a run a cell is.
    pub metric: Metric,
    /// What is compared.
    pub compare: Compare,
    /// Remarks.
    pub notes: Vec<String>,
    /// Variants, [`DEFAULT_VARIANT`] first.
    pub variants: Vec<Variant>,
    /// Columns.
    pub columns: Vec<RecipeColumn>,
    /// Kernels beyond the columns.
    pub extras: Vec<Extra>,
    /// Tables.
    pub tables: Vec<RecipeTable>,
    /// Rows.
    pub rows: Vec<RecipeRow>,
    /// Judgement of figures in prose.
    pub prose: Vec<ProseTest>,
    /// Lines of the file by what stands there: `row Seq`, `claim dd50`.
    lines: BTreeMap<String, usize>,
}

/// A run of the model or of a real kernel; cells with equal runs share one recording.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct RunPlan {
    /// Workload.
    pub workload: String,
    /// Machine.
    pub machine: String,
    /// Kernel.
    pub kernel: String,
    /// Parameters.
    pub set: Settings,
}

/// A cell to be filled.
#[derive(Debug, Clone, PartialEq)]
pub struct CellPlan {
    /// The cell.
    pub cell: CellId,
    /// The run that gives it.
    pub run: RunPlan,
    /// What of the run it is.
    pub metric: Metric,
    /// Whether the source prints a figure for it (extra columns have none).
    pub printed: bool,
}

/// Where in a recipe something is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// File.
    pub file: String,
    /// Line, from 1; none where all of the file is meant.
    pub line: Option<usize>,
}

impl Place {
    /// The line of a field such as `row Seq: metric`, or of the section that it is in.
    fn of(file: &str, lines: &BTreeMap<String, usize>, field: &str) -> Place {
        let section = field.split(&[':', ','][..]).next().unwrap_or(field);
        let line = lines.get(field).or_else(|| lines.get(section));
        Place {
            file: file.to_owned(),
            line: line.copied(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.file),
            None => write!(f, "{}", self.file),
        }
    }
}

/// Why a recipe cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// Not the TOML that it should be.
    #[error("{file}: {source}")]
    Toml {
        /// File.
        file: String,
        /// Line, column and what was expected there.
        source: Box<toml::de::Error>,
    },
    /// A value is not what it must be.
    #[error("{place}: {field}: {problem}")]
    Invalid {
        /// File and line.
        place: Place,
        /// Where in the file.
        field: String,
        /// What was expected.
        problem: String,
    },
    /// An expression cannot be parsed.
    #[error("{place}: {field}: {source}")]
    Claim {
        /// File and line.
        place: Place,
        /// Where in the file.
        field: String,
        /// What is wrong with it.
        source: Box<ClaimError>,
    },
    /// It does not fit its evaluation, or is asked for what it does not have.
    #[error("{place}: {field}: {problem}")]
    Mismatch {
        /// File and line.
        place: Place,
        /// Where in the recipe.
        field: String,
        /// What was expected.
        problem: String,
    },
    /// No recipe of this name.
    #[error("no recipe runs evaluation `{id}`; there are recipes for: {}", known.join(", "))]
    Unknown {
        /// Name asked for.
        id: String,
        /// Names that exist.
        known: Vec<String>,
    },
}

impl Recipe {
    /// Reads a recipe; `file` names it in errors.
    ///
    /// # Errors
    ///
    /// [`RecipeError`] that names the file and the field.
    pub fn parse(file: &str, text: &str) -> Result<Recipe, RecipeError> {
        raw::parse(file, text)
    }

    /// A variant by name.
    ///
    /// # Errors
    ///
    /// [`RecipeError::Mismatch`] that lists the variants there are.
    pub fn variant(&self, name: &str) -> Result<&Variant, RecipeError> {
        self.variants
            .iter()
            .find(|v| v.name == name)
            .ok_or_else(|| {
                let known: Vec<&str> = self.variants.iter().map(|v| v.name.as_str()).collect();
                self.mismatch(
                    format!("variant {name}"),
                    format!("expected one of {}", known.join(", ")),
                )
            })
    }

    /// How a figure in prose is judged, if the recipe says so.
    pub fn prose_test(&self, id: &str) -> Option<&ProseTest> {
        self.prose.iter().find(|p| p.id == id)
    }

    /// Checks that every table, row and column exists in the evaluation and every unit fits.
    ///
    /// # Errors
    ///
    /// [`RecipeError::Mismatch`].
    pub fn check(&self, evaluation: &Evaluation) -> Result<(), RecipeError> {
        if self.evaluation != evaluation.id {
            let problem = format!("expected `{}`, found `{}`", evaluation.id, self.evaluation);
            return Err(self.mismatch("evaluation", problem));
        }
        for test in &self.prose {
            let known = evaluation.prose.iter().map(|p| p.id.as_str());
            self.known("claim", &test.id, known)?;
            self.prose_fits(test, evaluation)?;
        }
        // Evaluations in prose have no tables: a recipe then uses names of its own.
        if evaluation.tables.is_empty() {
            return self.own_rows_exist();
        }
        for column in &self.columns {
            let known = evaluation.columns.iter().map(|c| c.id.as_str());
            self.known("column", &column.id, known)?;
        }
        for table in &self.tables {
            self.known(
                "table",
                &table.id,
                evaluation.tables.iter().map(|t| t.id.as_str()),
            )?;
        }
        let rows = || {
            evaluation
                .tables
                .iter()
                .flat_map(|t| &t.rows)
                .map(|r| r.name.as_str())
        };
        for row in &self.rows {
            self.known("row", &row.id, rows())?;
        }
        self.units_fit(evaluation)
    }

    /// A figure that states a change is judged by the rule for changes, and no other figure is.
    fn prose_fits(&self, test: &ProseTest, evaluation: &Evaluation) -> Result<(), RecipeError> {
        let change = evaluation
            .prose_figure(&test.id)
            .is_some_and(|figure| figure.change().is_some());
        let expected = match test.measured {
            Measured::Value(_) if change => {
                "the figure states a change: expected `before` and `after`, which cells it is between"
            }
            Measured::Change { .. } if !change => {
                "the figure states no change: expected `expr`, what must hold"
            }
            _ => return Ok(()),
        };
        Err(self.mismatch(format!("claim {}", test.id), expected))
    }

    /// Every cell that the recipe fills, with the run that gives it, in printed order; cells of extra
    /// columns come last.
    ///
    /// # Errors
    ///
    /// [`RecipeError::Mismatch`] if the recipe does not fit the evaluation or has no such variant.
    pub fn cells(
        &self,
        evaluation: &Evaluation,
        variant: &str,
    ) -> Result<Vec<CellPlan>, RecipeError> {
        self.check(evaluation)?;
        let variant = self.variant(variant)?;
        let cells: Vec<CellId> = if evaluation.tables.is_empty() {
            self.own_cells()
        } else {
            evaluation.cells().map(|(cell, _)| cell).collect()
        };
        let mut plans: Vec<CellPlan> = cells
            .into_iter()
            .filter_map(|cell| self.plan(cell, variant))
            .collect();
        for extra in &self.extras {
            let cells = extra
                .claim
                .cells()
                .into_iter()
                .filter(|c| c.column == extra.id);
            plans.extend(cells.filter_map(|cell| self.plan(cell, variant)));
        }
        Ok(plans)
    }

    /// Cells of a recipe whose evaluation has no tables: its own tables, rows and columns.
    fn own_cells(&self) -> Vec<CellId> {
        let mut cells = Vec::new();
        for table in &self.tables {
            for row in self.rows_of(table) {
                let columns = self.columns.iter();
                cells.extend(columns.map(|c| CellId::new(&table.id, &row.id, &c.id)));
            }
        }
        cells
    }

    /// Rows of a table that is not in print.
    pub fn rows_of<'r>(&'r self, table: &'r RecipeTable) -> Vec<&'r RecipeRow> {
        if table.rows.is_empty() {
            self.rows.iter().collect()
        } else {
            let named = |id: &String| self.rows.iter().find(|row| row.id == *id);
            table.rows.iter().filter_map(named).collect()
        }
    }

    fn own_rows_exist(&self) -> Result<(), RecipeError> {
        for table in &self.tables {
            for row in &table.rows {
                if !self.rows.iter().any(|known| known.id == *row) {
                    let problem = format!("no row is called {row}");
                    return Err(self.mismatch(format!("table {}: rows", table.id), problem));
                }
            }
        }
        Ok(())
    }

    /// What of a run the cells of a row are.
    pub fn metric_of<'r>(&'r self, table: &'r RecipeTable, row: &str) -> &'r Metric {
        let row = self.rows.iter().find(|r| r.id == row);
        let own = row.and_then(|row| row.metric.as_ref());
        own.or(table.metric.as_ref()).unwrap_or(&self.metric)
    }

    /// The plan of a cell, if its table, row and column are in the recipe.
    fn plan(&self, cell: CellId, variant: &Variant) -> Option<CellPlan> {
        let table = self.tables.iter().find(|t| t.id == cell.table)?;
        let row = self.rows.iter().find(|r| r.id == cell.row);
        if row.is_none() && table.metric.is_none() {
            return None;
        }
        let column = self.columns.iter().find(|c| c.id == cell.column);
        let (kernel, column_set) = match column {
            Some(column) => (&column.kernel, &column.set),
            None => {
                let extra = self.extras.iter().find(|e| e.id == cell.column)?;
                (&extra.kernel, &extra.set)
            }
        };
        let mut set = Settings::new();
        let row_set = row.map(|row| &row.set);
        let settings = [
            Some(&table.set),
            Some(column_set),
            row_set,
            Some(&variant.set),
        ];
        for settings in settings.into_iter().flatten() {
            set.extend(settings.iter().map(|(k, v)| (k.clone(), v.clone())));
        }
        let run = RunPlan {
            workload: table.workload.as_ref().unwrap_or(&self.workload).clone(),
            machine: table.machine.clone(),
            kernel: kernel.clone(),
            set,
        };
        let metric = self.metric_of(table, &cell.row).clone();
        Some(CellPlan {
            cell,
            run,
            metric,
            printed: column.is_some(),
        })
    }

    fn units_fit(&self, evaluation: &Evaluation) -> Result<(), RecipeError> {
        for own in &self.tables {
            let Some(table) = evaluation.table(&own.id) else {
                continue;
            };
            for row in &table.rows {
                let mentioned = self.rows.iter().any(|r| r.id == row.name);
                if !mentioned && own.metric.is_none() {
                    continue;
                }
                let metric = self.metric_of(own, &row.name);
                if let Some(problem) = metric.contradicts(&row.name, &row.unit) {
                    let field = if mentioned {
                        format!("row {}", row.name)
                    } else {
                        format!("table {}: row {}", own.id, row.name)
                    };
                    return Err(self.mismatch(field, problem));
                }
            }
        }
        Ok(())
    }

    fn known<'n>(
        &self,
        kind: &str,
        name: &str,
        known: impl Iterator<Item = &'n str>,
    ) -> Result<(), RecipeError> {
        let known: Vec<&str> = known.collect();
        if known.contains(&name) {
            return Ok(());
        }
        let problem = format!(
            "not in the evaluation; expected one of {}",
            known.join(", ")
        );
        Err(self.mismatch(format!("{kind} {name}"), problem))
    }

    fn mismatch(&self, field: impl Into<String>, problem: impl Into<String>) -> RecipeError {
        let field = field.into();
        RecipeError::Mismatch {
            place: Place::of(&self.file, &self.lines, &field),
            field,
            problem: problem.into(),
        }
    }
}

#[cfg(test)]
mod tests;

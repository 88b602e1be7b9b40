//! Claims judged on a model's figures, by the rules of `evaluations/published/README.md`.
//!
//! 1. A claim that does not count judges no model, whatever its figures are.
//! 2. A claim about cells is contradicted where its `model_expr` does not hold, and vacuous where it holds but
//!    `vacuous_unless` does not.
//! 3. A figure in prose that states a change is judged by the size of the change, another one by the recipe.
//! 4. Where a cell that decides has no figure the claim is not modelled.

use crate::cell::{CellId, CellValues, figure};
use crate::claim::{Claim, Compared, Judgement};
use crate::evaluation::{CellTest, ClaimTest, Evaluation, ProseFigure, StatedClaim};
use crate::recipe::{Extra, ProseTest, Recipe};
use serde::Serialize;

/// What the model says about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The model does what the claim says.
    BorneOut,
    /// It does not.
    Contradicted,
    /// It does, but shows nothing by it: its kernels do not differ where they must.
    Vacuous,
    /// The claim judges no model; its note says why.
    NotCounted,
    /// The model has no figure for one of its cells.
    NotModelled,
}

/// A claim with its verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimResult {
    /// What the source says.
    pub text: String,
    /// `prose` or `table`.
    pub said: String,
    /// Whether it judges a model.
    pub counts: bool,
    /// What the claim says of the printed figures; none for a figure in prose.
    pub expr: Option<String>,
    /// By what the model is judged; none for a figure in prose that nothing stands for.
    pub model_expr: Option<String>,
    /// What must hold besides, or the claim is vacuous.
    pub vacuous_unless: Option<String>,
    /// Whether the published figures bear it out.
    pub published_holds: bool,
    /// What the model says.
    pub verdict: Verdict,
    /// The numbers of `expr` in print; empty where print has none.
    pub published: Vec<Compared>,
    /// The numbers of `model_expr` in the model; empty where it has none.
    pub model: Vec<Compared>,
    /// The numbers of `vacuous_unless` in the model.
    pub guard: Vec<Compared>,
    /// Cells for which the model has no figure.
    pub missing: Vec<CellId>,
    /// Why it is not measured.
    pub reason: Option<String>,
    /// Remark.
    pub note: Option<String>,
}

impl ClaimResult {
    /// Whether the claim was judged: it is borne out or not; none if it is vacuous, does not count or is not modelled.
    pub fn holds(&self) -> Option<bool> {
        match self.verdict {
            Verdict::BorneOut => Some(true),
            Verdict::Contradicted => Some(false),
            Verdict::Vacuous | Verdict::NotCounted | Verdict::NotModelled => None,
        }
    }

    /// Whether this verdict is good enough: the claim is borne out, or need not be.
    pub fn is_kept(&self) -> bool {
        !self.counts || self.verdict == Verdict::BorneOut
    }
}

/// Counts of claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ClaimSummary {
    /// All of them.
    pub total: usize,
    /// Those that count; the others judge no model.
    pub count: usize,
    /// Those of them that the model has figures for: borne out, contradicted or vacuous.
    pub judged: usize,
    /// Borne out by the model.
    pub borne_out: usize,
    /// Contradicted by it.
    pub contradicted: usize,
    /// Met by kernels that do not differ.
    pub vacuous: usize,
    /// Counting, but without figures.
    pub not_modelled: usize,
}

impl ClaimSummary {
    /// Counts the verdicts.
    pub fn of(claims: &[ClaimResult]) -> ClaimSummary {
        let count = |verdict| claims.iter().filter(|c| c.verdict == verdict).count();
        let [borne_out, contradicted, vacuous] =
            [Verdict::BorneOut, Verdict::Contradicted, Verdict::Vacuous].map(count);
        ClaimSummary {
            total: claims.len(),
            count: claims.len() - count(Verdict::NotCounted),
            judged: borne_out + contradicted + vacuous,
            borne_out,
            contradicted,
            vacuous,
            not_modelled: count(Verdict::NotModelled),
        }
    }
}

/// Judges a claim of the index.
pub(super) fn judge(
    stated: &StatedClaim,
    evaluation: &Evaluation,
    recipe: Option<&Recipe>,
    published: &CellValues,
    model: &CellValues,
) -> ClaimResult {
    match &stated.test {
        ClaimTest::Expr(test) => judge_cells(stated, test, published, model),
        ClaimTest::Prose(id) => {
            let test = recipe.and_then(|recipe| recipe.prose_test(id));
            judge_prose(stated, evaluation.prose_figure(id), test, model)
        }
    }
}

fn judge_cells(
    stated: &StatedClaim,
    test: &CellTest,
    published: &CellValues,
    model: &CellValues,
) -> ClaimResult {
    let in_model = |claim: &Claim| claim.judge(|cell| figure(model, cell));
    let in_print = test.printed.judge(|cell| figure(published, cell));
    let judgement = in_model(&test.model);
    let guard = test.vacuous_unless.as_ref().map(in_model);
    ClaimResult {
        expr: Some(test.printed.text().to_owned()),
        vacuous_unless: test.vacuous_unless.as_ref().map(|c| c.text().to_owned()),
        published: in_print.compared().to_vec(),
        guard: guard
            .as_ref()
            .map_or(Vec::new(), |guard| guard.compared().to_vec()),
        ..claim_result(stated, Some(&test.model), Some(judgement), guard)
    }
}

fn judge_prose(
    stated: &StatedClaim,
    stated_figure: Option<&ProseFigure>,
    test: Option<&ProseTest>,
    model: &CellValues,
) -> ClaimResult {
    let claim = test.zip(stated_figure).and_then(|(t, f)| t.claim(f));
    let judgement = claim.as_ref().map(|c| c.judge(|cell| figure(model, cell)));
    let result = claim_result(stated, claim.as_ref(), judgement, None);
    ClaimResult {
        reason: test.and_then(ProseTest::reason).map(str::to_owned),
        note: test.and_then(|t| t.note.clone()).or(result.note.clone()),
        ..result
    }
}

/// What a claim and its judgement in the model give by themselves.
fn claim_result(
    stated: &StatedClaim,
    claim: Option<&Claim>,
    judgement: Option<Judgement>,
    guard: Option<Judgement>,
) -> ClaimResult {
    ClaimResult {
        text: stated.text.clone(),
        said: stated.said.clone(),
        counts: stated.counts,
        expr: None,
        model_expr: claim.map(|c| c.text().to_owned()),
        vacuous_unless: None,
        published_holds: stated.holds,
        verdict: verdict(stated.counts, judgement.as_ref(), guard.as_ref()),
        published: Vec::new(),
        model: judgement
            .as_ref()
            .map_or(Vec::new(), |j| j.compared().to_vec()),
        guard: Vec::new(),
        missing: missing(judgement, guard),
        reason: None,
        note: stated.note.clone(),
    }
}

/// As `model_verdict` in `evaluations/published/check.py`, and not modelled where that has no figure to go by.
fn verdict(counts: bool, model: Option<&Judgement>, guard: Option<&Judgement>) -> Verdict {
    if !counts {
        return Verdict::NotCounted;
    }
    match (
        model.and_then(Judgement::holds),
        guard.map(Judgement::holds),
    ) {
        (None, _) => Verdict::NotModelled,
        (Some(false), _) => Verdict::Contradicted,
        (Some(true), Some(None)) => Verdict::NotModelled,
        (Some(true), Some(Some(false))) => Verdict::Vacuous,
        (Some(true), None | Some(Some(true))) => Verdict::BorneOut,
    }
}

/// Cells without a figure, once each.
fn missing(judgement: Option<Judgement>, guard: Option<Judgement>) -> Vec<CellId> {
    let of = |judgement: Judgement| match judgement {
        Judgement::Missing(cells) => cells,
        Judgement::Decided { .. } => Vec::new(),
    };
    let mut cells: Vec<CellId> = [judgement, guard]
        .into_iter()
        .flatten()
        .flat_map(of)
        .collect();
    cells.sort();
    cells.dedup();
    cells
}

/// Figures in prose that the recipe knows of and the index does not.
pub(super) fn figures(
    evaluation: &Evaluation,
    recipe: &Recipe,
    model: &CellValues,
) -> Vec<ClaimResult> {
    let claimed = |figure: &ProseFigure| {
        let same = |claim: &StatedClaim| claim.test == ClaimTest::Prose(figure.id.clone());
        evaluation.claims.iter().any(same)
    };
    let judged = |figure: &ProseFigure| {
        let test = recipe.prose_test(&figure.id)?;
        let stated = StatedClaim {
            text: figure.sentence(),
            said: "prose".to_owned(),
            test: ClaimTest::Prose(figure.id.clone()),
            holds: true,
            counts: true,
            note: figure.note.clone(),
        };
        Some(judge_prose(&stated, Some(figure), Some(test), model))
    };
    let others = evaluation.prose.iter().filter(|figure| !claimed(figure));
    others.filter_map(judged).collect()
}

/// A claim about a kernel without figures holds in print because the source says so.
pub(super) fn judge_extra(extra: &Extra, model: &CellValues) -> ClaimResult {
    let stated = StatedClaim {
        text: extra.text.clone(),
        said: "prose".to_owned(),
        test: ClaimTest::Prose(extra.id.clone()),
        holds: true,
        counts: true,
        note: extra.note.clone(),
    };
    let judgement = extra.claim.judge(|cell| figure(model, cell));
    claim_result(&stated, Some(&extra.claim), Some(judgement), None)
}

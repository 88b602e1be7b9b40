//! Models that are right, wrong by a factor, and incomplete.

mod check_py;

use super::*;
use crate::claim::Claim;
use crate::evaluation::{self, CellTest, ClaimTest, StatedClaim};
use crate::recipe;
use crate::table::PlainStyle;

/// A model that gives published figures times a factor.
fn scaled(evaluation: &Evaluation, factor: f64) -> CellValues {
    evaluation
        .cells()
        .map(|(cell, p)| (cell, Some(p.value * factor)))
        .collect()
}

fn get(id: &str) -> Evaluation {
    evaluation::get(id).expect("embedded evaluations are valid")
}

#[test]
fn a_perfect_model_bears_out_all_that_counts() {
    for id in evaluation::ids().filter(|id| !id.starts_with("ioless")) {
        let evaluation = get(id);
        let result = Reproduction::new(&evaluation, None, &scaled(&evaluation, 1.0));
        assert_eq!(result.exit_status(), 0, "{id}");
        let claims = result.summary.claims;
        assert_eq!(
            (claims.borne_out, claims.vacuous),
            (claims.count, 0),
            "{id}"
        );
        let errors = result.summary.cell_errors.as_ref().expect("errors");
        assert_eq!((errors.median, errors.worst), (0.0, 0.0), "{id}");
        for claim in &result.claims {
            let expected = if claim.counts {
                Verdict::BorneOut
            } else {
                Verdict::NotCounted
            };
            assert_eq!(claim.verdict, expected, "{id}: {}", claim.text);
            assert!(!claim.published.is_empty() && !claim.model.is_empty());
        }
    }
}

#[test]
fn a_constant_factor_cancels_out_of_ratios() {
    let evaluation = get("swap-readahead");
    let result = Reproduction::new(&evaluation, None, &scaled(&evaluation, 1.25));
    let cells = result.summary.cell_errors.as_ref().expect("errors");
    assert_eq!((cells.count, cells.median, cells.worst), (48, 0.25, 0.25));
    let ratios = result.summary.ratio_errors.as_ref().expect("errors");
    assert_eq!(ratios.count, 40);
    assert!(ratios.worst < 1e-12);
    assert_eq!(result.exit_status(), 0);
}

#[test]
fn one_wrong_cell_is_the_worst_and_fails_its_claims() {
    let evaluation = get("swap-readahead");
    let mut model = scaled(&evaluation, 1.0);
    let cell = CellId::new("ssd", "Rand Anon", "HughNew");
    model.insert(cell.clone(), Some(2.0 * 25989.0));
    let result = Reproduction::new(&evaluation, None, &model);
    let errors = result.summary.cell_errors.as_ref().expect("errors");
    assert_eq!(
        (errors.median, errors.worst, &errors.worst_cell),
        (0.0, 1.0, &cell)
    );
    assert_eq!(result.claims[0].verdict, Verdict::Contradicted);
    assert_eq!(result.summary.claims.contradicted, 1);
    assert_eq!(result.exit_status(), 1);
    let wrong = result
        .cells
        .iter()
        .find(|c| c.cell == cell)
        .expect("the cell");
    assert!((wrong.baseline_ratio_error.expect("an error") - 1.0).abs() < 1e-12);
}

#[test]
fn without_a_figure_a_claim_is_undecided_and_the_status_is_1() {
    let evaluation = get("swap-readahead");
    let mut model = scaled(&evaluation, 1.0);
    model.retain(|cell, _| cell.table == "hdd");
    let result = Reproduction::new(&evaluation, None, &model);
    assert_eq!(result.summary.modelled, 24);
    let claim = &result.claims[0];
    assert_eq!((claim.verdict, claim.holds()), (Verdict::NotModelled, None));
    assert_eq!(claim.missing.len(), 2);
    assert!(claim.model.is_empty() && !claim.published.is_empty());
    assert_eq!(result.exit_status(), 1);
}

#[test]
fn a_claim_that_does_not_count_is_shown_and_judges_nothing() {
    let evaluation = get("vmscan-2010-x86_64-micro-mapped-file-stream");
    let result = Reproduction::new(&evaluation, None, &scaled(&evaluation, 1.0));
    let claim = result
        .claims
        .iter()
        .find(|c| !c.counts)
        .expect("one such claim");
    assert_eq!((claim.verdict, claim.holds()), (Verdict::NotCounted, None));
    assert!(!claim.published_holds && !claim.model.is_empty());
    assert_eq!(result.exit_status(), 0);
    let text = result.text(&PlainStyle, None);
    let shown = format!("not counted   {}\n", claim.text);
    assert!(
        text.contains(&shown) && text.contains("Not counted: "),
        "{text}"
    );
    // Without any figure it does not count either.
    let result = Reproduction::new(&evaluation, None, &CellValues::new());
    let claims = result.summary.claims;
    assert_eq!(
        (claims.count, claims.not_modelled, claims.judged),
        (4, 4, 0)
    );
}

/// Columns that are all the baseline show nothing: a claim that they are the same is vacuous, and is not borne out.
#[test]
fn kernels_that_do_not_differ_bear_nothing_out() {
    let mut vacuous = 0;
    for id in evaluation::ids().filter(|id| !id.starts_with("ioless")) {
        let evaluation = get(id);
        let values = evaluation.cell_values();
        let baseline = |cell: &CellId| {
            let table = evaluation.table(&cell.table).expect("a table");
            figure(&values, &cell.in_column(&table.columns[0]))
        };
        let model = values.keys().map(|c| (c.clone(), baseline(c))).collect();
        let result = Reproduction::new(&evaluation, None, &model);
        assert_eq!(result.summary.claims.borne_out, 0, "{id}");
        vacuous += result.summary.claims.vacuous;
        assert_eq!(
            result.exit_status(),
            u8::from(result.summary.claims.count > 0)
        );
        let text = result.text(&PlainStyle, None);
        for claim in &result.claims {
            let why = "it would show something only if ";
            let reason = claim.vacuous_unless.as_deref().unwrap_or("(none)");
            let shown = text.contains(&format!("{why}{reason}; here "));
            assert_eq!(shown, claim.verdict == Verdict::Vacuous, "{id}: {text}");
        }
    }
    // Of fifteen guarded claims the model_expr of two asks for a difference by itself.
    assert_eq!(vacuous, 13);
}

#[test]
fn claims_in_prose_are_undecided_until_a_recipe_judges_them() {
    let evaluation = get("ioless-dirty-2011");
    let result = Reproduction::new(&evaluation, None, &CellValues::new());
    assert_eq!(result.summary.claims.not_modelled, 5);
    assert_eq!(result.exit_status(), 1);

    let text = r#"
lowmark = 1
evaluation = "ioless-dirty-2011"
workload = "dd"
metric = { value = "elapsed", unit = "s" }
columns = ["before", "after"]
column.before = { kernel = "v3.1" }
column.after = { kernel = "v3.2" }
table.dd100 = { machine = "m" }
row.System = { metric = { value = "system", unit = "s" } }
claim.dd100-system = { before = "[dd100::System::before]", after = "[dd100::System::after]" }
"#;
    let recipe = Recipe::parse("r.toml", text).expect("a recipe");
    let plans = recipe
        .cells(&evaluation, "default")
        .expect("cells of its own tables");
    assert_eq!(plans.len(), 2);
    // In print it falls to a tenth: to 1/19 to 1/5.5 bears that out.
    for (after, verdict) in [
        (3.0, Verdict::BorneOut),
        (5.4, Verdict::BorneOut),
        (5.6, Verdict::Contradicted),
        (1.5, Verdict::Contradicted),
        (33.0, Verdict::Contradicted),
    ] {
        let figures = plans.iter().zip([30.0, after]);
        let model: CellValues = figures.map(|(p, v)| (p.cell.clone(), Some(v))).collect();
        let result = Reproduction::new(&evaluation, Some(&recipe), &model);
        assert_eq!(result.claims[0].verdict, verdict, "{after}");
        assert_eq!(result.claims[0].model[0].right.value, after / 30.0);
        assert_eq!(result.summary.claims.not_modelled, 4);
    }
}

#[test]
fn every_figure_in_prose_is_measured_or_says_why_not() {
    let evaluation = get("ioless-dirty-2011");
    let recipe = recipe::get("ioless-dirty-2011").expect("embedded");
    let plans = recipe.cells(&evaluation, "default").expect("cells");
    let model: CellValues = plans.iter().map(|p| (p.cell.clone(), Some(1.0))).collect();
    let result = Reproduction::new(&evaluation, Some(&recipe), &model);
    assert_eq!(
        result.claims.len() + result.figures.len(),
        evaluation.prose.len()
    );
    for claim in result.claims.iter().chain(&result.figures) {
        assert!(
            claim.reason.is_some() != claim.model_expr.is_some(),
            "{}",
            claim.text
        );
        assert_eq!(claim.missing, [], "{}: a cell that is not run", claim.text);
    }
    let text = result.text(&PlainStyle, None);
    for part in [
        "50 dd for 5 minutes",
        "not measured: the model has no cache lines",
        "from 2502.17 to 2453.23 seconds",
        "from 20 to about 17.5 %",
        "about -55 %",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let of_one: CellValues = model
        .into_iter()
        .filter(|(cell, _)| cell.table == "dd50")
        .collect();
    let part = Reproduction::new(&evaluation, Some(&recipe), &of_one).of_what_was_run();
    assert_eq!((part.claims.len(), part.figures.len()), (2, 0));
}

#[test]
fn additional_claims_are_shown_and_do_not_decide() {
    let evaluation = get("swap-readahead");
    let recipe = recipe::get("swap-readahead").expect("embedded");
    let mut model = scaled(&evaluation, 1.0);
    // Half as slow again as Vanilla on each sequential row.
    let rows = [
        ("hdd", "Seq Anon", 73_921.0),
        ("hdd", "Seq Shmem", 73_601.0),
        ("ssd", "Seq Anon", 24_634.0),
        ("ssd", "Seq Shmem", 24_959.0),
    ];
    for (table, row, vanilla) in rows {
        model.insert(CellId::new(table, row, "Konstantin"), Some(vanilla * 1.5));
    }
    let result = Reproduction::new(&evaluation, Some(&recipe), &model);
    assert_eq!(result.additional_claims[0].verdict, Verdict::BorneOut);
    assert_eq!(result.additional_cells.len(), 4);
    assert_eq!(result.cells.len(), 48);
    for (table, row, vanilla) in rows {
        model.insert(CellId::new(table, row, "Konstantin"), Some(vanilla));
    }
    let result = Reproduction::new(&evaluation, Some(&recipe), &model);
    assert_eq!(result.additional_claims[0].verdict, Verdict::Contradicted);
    assert_eq!(
        (result.exit_status(), result.summary.claims.borne_out),
        (0, 5)
    );
}

#[test]
fn without_a_stated_machine_only_ratios_are_summarised() {
    let evaluation = get("swap-readahead-shaohua-2014");
    let recipe = recipe::get("swap-readahead-shaohua-2014").expect("embedded");
    let result = Reproduction::new(&evaluation, Some(&recipe), &scaled(&evaluation, 3.0));
    assert_eq!(result.summary.cell_errors, None);
    assert_eq!(
        result.summary.ratio_errors.as_ref().map(|e| e.count),
        Some(4)
    );
    let text = result.text(&PlainStyle, None);
    assert!(text.contains("absolute figures are not compared"), "{text}");
    assert!(!text.contains("\n            error "), "{text}");
}

#[test]
fn errors_at_zero() {
    assert_eq!(relative_error(0.0, 0.0), Some(0.0));
    assert_eq!(relative_error(5.0, 0.0), None);
    assert_eq!(relative_error(0.0, 5.0), Some(-1.0));
}

#[test]
fn json_has_its_stable_names() {
    let evaluation = get("swap-readahead");
    let mut model = scaled(&evaluation, 1.0);
    model.remove(&CellId::new("hdd", "Seq Anon", "HughPC0"));
    let json = Reproduction::new(&evaluation, None, &model).json();
    assert_eq!(json["version"], 2);
    assert_eq!(json["evaluation"], "swap-readahead");
    let first = &json["claims"][0];
    assert_eq!(
        (&first["holds"], &first["published_holds"]),
        (&true.into(), &true.into())
    );
    assert_eq!(first["verdict"], "borne-out");
    assert_eq!(first["value"][0]["op"], "<=");
    assert_eq!(first["published_value"][0]["op"], ">=");
    assert!(first["model_expr"].as_str() != first["expr"].as_str());
    assert_eq!(json["claims"][3]["guard"][0]["holds"], true);
    assert_eq!(first["published_value"][0]["right"], 1.5);
    let undecided = &json["claims"][1];
    assert!(undecided["holds"].is_null() && undecided["value"].is_null());
    assert_eq!(undecided["missing"][0], "[hdd::Seq Anon::HughPC0]");
    let cell = &json["cells"][1];
    assert_eq!(cell["table"], "hdd");
    assert_eq!(cell["row"], "Seq Anon");
    assert_eq!(cell["column"], "Shaohua");
    assert_eq!(cell["published"], 76210.0);
    assert_eq!(cell["model"], 76210.0);
    assert_eq!(cell["ratio_error"], 0.0);
    assert_eq!(json["summary"]["claims"]["not_modelled"], 1);
    assert_eq!(json["summary"]["cell_errors"]["worst"], 0.0);
    assert_eq!(json["summary"]["exit_status"], 1);
}

#[test]
fn a_comparison_shows_why_it_holds() {
    let shown = |expr: &str, value: f64| {
        let judgement = Claim::parse(expr).expect("a claim").judge(|_| Some(value));
        text::comparison(&judgement.compared()[0])
    };
    assert_eq!(shown("[t::r::c] >= 1.5", 1.655_123), "1.655 >= 1.5");
    assert_eq!(shown("1.129 < [t::r::c]", 1.129_19), "1.129 < 1.1292");
    assert_eq!(shown("[t::r::c] < 0.01", 0.004_619_3), "0.004619 < 0.01");
    assert_eq!(shown("[t::r::c] == 312", 312.0), "312 == 312");
    assert_eq!(shown("[t::r::c] > 1", 1.5e-300), "1.500e-300 > 1");
    assert_eq!(shown("[t::r::c] / 0 > 1", 5.0), "inf > 1");
    assert_eq!(shown("[t::r::c] / 0 > 1", 0.0), "NaN > 1");
    assert_eq!(shown("0.5 * 2 <= [t::r::c]", 1234.56), "0.5 * 2 <= 1235");
}

#[test]
fn the_variant_is_named() {
    let evaluation = get("swap-readahead");
    let recipe = recipe::get("swap-readahead").expect("embedded");
    let variant = recipe.variant("five-passes").expect("a variant");
    let result = Reproduction::new(&evaluation, Some(&recipe), &scaled(&evaluation, 1.0));
    let result = result.of_variant(variant);
    assert_eq!(result.json()["variant"], "five-passes");
    assert!(
        result
            .text(&PlainStyle, None)
            .contains("\nvariant five-passes: five times around")
    );
}

/// A variant that judges nothing has its tables, and no claim that could decide.
#[test]
fn claims_are_judged_if_the_variant_judges() {
    let evaluation = get("swap-readahead");
    let recipe = recipe::get("swap-readahead").expect("embedded");
    let judged = recipe.variant("five-passes").expect("a variant");
    let shown = recipe::Variant {
        judged: false,
        ..judged.clone()
    };
    // All rows alike: half of the claims do not hold.
    let mut model = scaled(&evaluation, 1.0);
    model.values_mut().for_each(|value| *value = Some(1.0));
    let result = |variant| {
        Reproduction::new(&evaluation, Some(&recipe), &model)
            .of_what_was_run()
            .of_variant(variant)
    };
    let (kept, none) = (result(judged), result(&shown));
    assert_eq!((kept.exit_status(), none.exit_status()), (1, 0));
    assert_eq!(kept.json()["judged"], true);
    let json = none.json();
    assert_eq!(json["judged"], false);
    assert_eq!(json["claims"], serde_json::json!([]));
    assert_eq!(json["cells"], kept.json()["cells"]);
    let (kept, none) = (kept.text(&PlainStyle, None), none.text(&PlainStyle, None));
    assert!(kept.contains("contradicted  ") && kept.contains("\nclaims  "));
    assert!(!none.contains("contradicted  ") && !none.contains("\nClaims\n"));
    assert!(none.ends_with("\nclaims  are not judged by this variant\n"));
    let tables = |text: &str| text.find("Summary").map(|end| text[..end].len());
    assert!(tables(&none) > Some(1000), "{none}");
}

#[test]
fn narrow_bands_repeat_both_names() {
    let evaluation = get("swap-readahead");
    let result = Reproduction::new(&evaluation, None, &scaled(&evaluation, 1.0));
    let text = result.text(&PlainStyle, Some(80));
    let tables = &text[..text.find("Claims").expect("claims")];
    assert!(
        tables.lines().skip(1).all(|line| line.len() <= 80),
        "{tables}"
    );
    assert_eq!(
        tables.matches("Seq Anon    published").count(),
        4,
        "{tables}"
    );
}

/// An evaluation of two columns and one row, for a text that can be read here.
fn small() -> Evaluation {
    let text = r#"
schema = 1
id = "small"
title = "A small one"
mechanism = "m"
source = { subject = "s" }
setup = { ram = "900MB" }
columns = [{ id = "old", description = "o" }, { id = "new", description = "n" }]
[[tables]]
id = "t"
name = "Elapsed time"
unit = "seconds"
better = "lower"
rows = [{ name = "Seq", values = [100, 50] }]
"#;
    let parse = |expr: &str| Claim::parse(expr).expect("a claim");
    let claim = |text: &str, expr: &str, model: &str, guard: Option<&str>, counts| StatedClaim {
        text: text.to_owned(),
        said: "table".to_owned(),
        test: ClaimTest::Expr(Box::new(CellTest {
            printed: parse(expr),
            model: parse(model),
            vacuous_unless: guard.map(parse),
        })),
        holds: counts,
        counts,
        note: (!counts).then(|| "print says otherwise".to_owned()),
    };
    let claims = vec![
        claim(
            "new is twice as fast",
            "[t::Seq::old] / [t::Seq::new] >= 2",
            "[t::Seq::old] >= 1.85 * [t::Seq::new]",
            None,
            true,
        ),
        claim(
            "new takes no more",
            "[t::Seq::new] <= [t::Seq::old]",
            "[t::Seq::new] <= [t::Seq::old]",
            Some("[t::Seq::new] != [t::Seq::old] and [t::Seq::old] < 105"),
            true,
        ),
        claim(
            "new is free",
            "[t::Seq::new] == 0",
            "[t::Seq::new] == 0",
            None,
            false,
        ),
    ];
    Evaluation::parse("small.toml", text, claims).expect("valid")
}

#[test]
fn text_of_a_small_one() {
    let model = [("old", 110.0), ("new", 60.5)]
        .map(|(column, value)| (CellId::new("t", "Seq", column), Some(value)));
    let machine = MachineUsed {
        name: "box".to_owned(),
        description: "one CPU, one disk".to_owned(),
    };
    let fitted = Fitted {
        machine: "box".to_owned(),
        constant: "costs.syscall".to_owned(),
        to: vec!["t::Seq".to_owned(), "t::Rand".to_owned()],
    };
    let result =
        Reproduction::new(&small(), None, &model.into()).on_machines(vec![machine], vec![fitted]);
    assert_eq!(result.json()["fitted"][0]["constant"], "costs.syscall");
    assert_eq!(result.json()["claims"][1]["verdict"], "vacuous");
    let expected = "\
small: A small one
fitted: costs.syscall of box was fitted to t::Seq, t::Rand

Elapsed time (seconds)
                            old         new
Seq  published              100          50
     model                  110          60
     error               +10.0%      +21.0%
     error of ratio                  +10.0%

Claims
contradicted  new is twice as fast
              print 2 >= 2
              model 110 >= 111.9
vacuous       new takes no more
              print 50 <= 100
              model 60.50 <= 110
              why   it would show something only if [t::Seq::new] != [t::Seq::old] and [t::Seq::old] < 105; here 60.50 != 110, 110 < 105
not counted   new is free
              print 50 == 0 (does not bear it out)
              model 60.50 == 0
              note  print says otherwise

Summary
cells   2 of 2 modelled; |error| of 2: median 15.5%, worst 21.0% at [t::Seq::new]
ratios  |error| of 1: median 10.0%, worst 10.0% at [t::Seq::new]
claims  2 of 3 count: 2 judged, 0 borne out, 1 contradicted, 1 vacuous, 0 not modelled
the model does not bear out every claim that counts
";
    assert_eq!(result.text(&PlainStyle, None), expected);
    let expected = "\
<!-- written -->
# small: A small one

`lowmark reproduce small`.

Published: s.

## Machines

- `box`: one CPU, one disk.
  Fitted to these figures: `costs.syscall` to `t::Seq, t::Rand`.

## Figures

```
Elapsed time (seconds)
                            old         new
Seq  published              100          50
     model                  110          60
     error               +10.0%      +21.0%
     error of ratio                  +10.0%
```

## Claims

- **contradicted**: new is twice as fast
  - print: `2 >= 2`
  - model: `110 >= 111.9`
- **vacuous**: new takes no more
  - print: `50 <= 100`
  - model: `60.50 <= 110`
  - why: it would show something only if `[t::Seq::new] != [t::Seq::old] and [t::Seq::old] < 105`; here `60.50 != 110, 110 < 105`
- **not counted**: new is free
  - print: `50 == 0` (does not bear it out)
  - model: `60.50 == 0`
  - note: print says otherwise

## Summary

- Figures: 2 of 2 modelled; |error| of 2: median 15.5%, worst 21.0% at [t::Seq::new].
- Ratios to the first column: |error| of 1: median 10.0%, worst 10.0% at [t::Seq::new].
- Claims: 2 of 3 count: 2 judged, 0 borne out, 1 contradicted, 1 vacuous, 0 not modelled.
";
    assert_eq!(result.page("<!-- written -->"), expected);
}

/// Percentages follow from the model's figures by the rule of their table: of 2010 over the new value, of rates and
/// overheads as gains. Of printed figures they are those in print.
#[test]
fn percentages_are_those_of_the_tables() {
    for (id, row, percent) in [
        (
            "vmscan-2010-x86_64-micro-mapped-file-stream",
            "pgalloc_dma ",
            "-145.73%",
        ),
        ("lumpy-removal-2012-fs_mark", "Overhead mean", "-79.83%"),
        ("lumpy-removal-2012-postmark", "Transactions per", "25.00%"),
    ] {
        let evaluation = get(id);
        let result = Reproduction::new(&evaluation, None, &scaled(&evaluation, 1.0));
        let text = result.text(&PlainStyle, None);
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|line| line.starts_with(row));
        let rows = &lines[at.expect(row)..][..6];
        let of = |name: &str| rows.iter().find(|line| line.trim_start().starts_with(name));
        for name in ["published %", "model %"] {
            let line = of(name).expect(name);
            assert!(line.contains(percent), "{line}");
        }
    }
}

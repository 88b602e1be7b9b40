//! The embedded files, and files that are wrong.

use super::*;
use std::path::Path;

const SMALL: &str = r#"
schema = 1
id = "small"
title = "t"
mechanism = "m"
source = { subject = "s" }
setup = { ram = "900MB", dirty_ratio = 20 }
columns = [{ id = "a", description = "first" }, { id = "b", description = "second" }]

[[tables]]
id = "x"
name = "X"
unit = "ms"
better = "lower"
pct_rule = "gain_lower"
rows = [
  { name = "r", values = [10, 5.50], pct = [0.00, 45.00] },
  { name = "s", values = [1.0, nan], unit = "%", better = "higher" },
]
"#;

fn parse(text: &str) -> Result<Evaluation, EvaluationError> {
    Evaluation::parse("small.toml", text, Vec::new())
}

#[test]
fn every_file_is_embedded_and_indexed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evaluations/published");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder of published evaluations")
        .filter_map(|entry| {
            let name = entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8");
            name.strip_suffix(".toml")
                .filter(|stem| *stem != "index")
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    assert_eq!(ids().collect::<Vec<_>>(), names);
    let mut indexed: Vec<String> = index()
        .expect("a valid index")
        .into_iter()
        .map(|e| e.id)
        .collect();
    indexed.sort();
    assert_eq!(indexed, names);
}

#[test]
fn counts_agree_with_the_index() {
    let index = index().expect("a valid index");
    for entry in &index {
        let evaluation = get(&entry.id).expect("a valid evaluation");
        assert_eq!(evaluation.cell_count(), entry.cells, "{}", entry.id);
        assert_eq!(evaluation.title, entry.title);
        assert_eq!(evaluation.mechanism, entry.mechanism);
        assert_eq!(evaluation.claims, entry.claims);
    }
    assert_eq!(index.iter().map(|e| e.cells).sum::<usize>(), 1743);
    assert_eq!(index.iter().map(|e| e.claims.len()).sum::<usize>(), 74);
}

#[test]
fn figures_keep_their_precision() {
    let evaluation = parse(SMALL).expect("valid");
    let row = evaluation
        .table("x")
        .and_then(|t| t.row("r"))
        .expect("a row");
    assert_eq!(
        row.values[0],
        Printed {
            value: 10.0,
            decimals: None
        }
    );
    assert_eq!(
        row.values[1],
        Printed {
            value: 5.5,
            decimals: Some(2)
        }
    );
    assert_eq!(row.values[1].text(), "5.50");
    assert_eq!(row.values[1].ulp(), 0.01);
    assert_eq!((row.unit.as_str(), row.better), ("ms", Preference::Lower));
    let other = evaluation
        .table("x")
        .and_then(|t| t.row("s"))
        .expect("a row");
    assert_eq!(
        (other.unit.as_str(), other.better),
        ("%", Preference::Higher)
    );
    assert_eq!(evaluation.setup["dirty_ratio"], "20");
    assert_eq!(
        crate::cell::figure(&evaluation.cell_values(), &CellId::new("x", "s", "b")),
        None
    );
}

#[test]
fn unknown_names_list_the_known_ones() {
    let error = get("nonsense").expect_err("no such evaluation").to_string();
    assert!(
        error.contains("`nonsense`") && error.contains("swap-readahead"),
        "{error}"
    );
}

#[test]
fn wrong_files_are_refused_with_their_place() {
    for (from, to, expected) in [
        (
            "schema = 1",
            "schema = 2",
            "small.toml: schema: expected 1, found 2",
        ),
        (
            "[10, 5.50]",
            "[10]",
            "table x, row r: values: expected 2 numbers, found 1",
        ),
        (
            "pct_rule = \"gain_lower\"",
            "",
            "table x, row r: pct needs the pct_rule",
        ),
        (
            "name = \"s\"",
            "name = \"r\"",
            "table x: `r` stands there twice",
        ),
        (
            "id = \"b\"",
            "id = \"a\"",
            "columns: `a` stands there twice",
        ),
        (
            "unit = \"ms\"",
            "unit = \"ms\"\ncolumns = [\"c\"]",
            "no column is called `c`",
        ),
        ("better = \"lower\"", "better = \"less\"", "line 14"),
        ("title = \"t\"", "titel = \"t\"", "unknown field `titel`"),
        ("title = \"t\"", "", "missing field `title`"),
        (
            "[10, 5.50]",
            "[10, \"x\"]",
            "small.toml: TOML parse error at line 17",
        ),
    ] {
        assert!(SMALL.contains(from), "{from}");
        let error = parse(&SMALL.replacen(from, to, 1))
            .expect_err(expected)
            .to_string();
        assert!(
            error.contains(expected),
            "expected `{expected}` in `{error}`"
        );
    }
}

#[test]
fn claims_must_name_what_exists() {
    let claim = |test| StatedClaim {
        text: "c".to_owned(),
        said: "table".to_owned(),
        test,
        holds: true,
        counts: true,
        note: None,
    };
    let expr = |printed: &str, model: &str, guard: Option<&str>| {
        let parse = |text| Claim::parse(text).expect("a claim");
        ClaimTest::Expr(Box::new(CellTest {
            printed: parse(printed),
            model: parse(model),
            vacuous_unless: guard.map(parse),
        }))
    };
    let parse = |test| Evaluation::parse("small.toml", SMALL, vec![claim(test)]);
    let holds = "[x::r::a] > [x::r::b]";
    assert!(parse(expr(holds, holds, Some(holds))).is_ok());
    let wrong = "[x::r::a] < [x::r::b]";
    for (test, problem) in [
        (
            expr("[x::r::c] > 1", holds, None),
            "expr: no cell [x::r::c]",
        ),
        (
            expr(holds, "[x::r::c] > 1", None),
            "model_expr: no cell [x::r::c]",
        ),
        (
            expr(holds, holds, Some("[x::q::a] > 1")),
            "vacuous_unless: no cell [x::q::a]",
        ),
        (
            expr(wrong, holds, None),
            "expr: expected true on the printed figures, found false",
        ),
        (
            expr(holds, wrong, None),
            "model_expr: expected true on the printed figures, found false",
        ),
        (
            expr(holds, holds, Some(wrong)),
            "vacuous_unless: expected true on the printed figures, found false",
        ),
        (
            expr(holds, "[x::s::b] > 1", None),
            "model_expr: expected true on the printed figures, found undecided",
        ),
        (
            ClaimTest::Prose("p".to_owned()),
            "no figure in prose is called `p`",
        ),
    ] {
        let error = parse(test).expect_err(problem).to_string();
        assert_eq!(error, format!("small.toml: claim `c`: {problem}"));
    }
}

#[test]
fn claims_of_the_index_say_how_a_model_is_judged() {
    let index = |claim: &str| {
        let text = format!(
            "schema = 1\n[[evaluations]]\nid = \"e\"\ntitle = \"t\"\nmechanism = \"m\"\ncells = 1\n\
             [[evaluations.claims]]\ntext = \"c\"\nsaid = \"table\"\nholds = true\n{claim}"
        );
        raw::index("index.toml", &text)
    };
    let whole =
        "expr = \"1 > 0\"\nmodel_expr = \"2 > 1\"\nvacuous_unless = \"3 > 2\"\ncounts = true\n";
    let entries = index(whole).expect("valid");
    let ClaimTest::Expr(test) = &entries[0].claims[0].test else {
        panic!("it is about cells");
    };
    let texts: Vec<&str> = test.expressions().map(|(_, claim)| claim.text()).collect();
    assert_eq!(texts, ["1 > 0", "2 > 1", "3 > 2"]);
    for (claim, problem) in [
        (
            "expr = \"1 > 0\"\ncounts = true",
            "`model_expr` beside `expr`",
        ),
        (
            "expr = \"1 > 0\"\nmodel_expr = \"1 > 0\"",
            "missing field `counts`",
        ),
        (
            "expr = \"1 > 0\"\nmodel_expr = \"1 > 0\"\ncounts = false",
            "a `note` that says why it does not count",
        ),
        (
            "claim = \"p\"\nmodel_expr = \"1 > 0\"\ncounts = true",
            "`claim` without either",
        ),
        (
            "claim = \"p\"\nvacuous_unless = \"1 > 0\"\ncounts = true",
            "`claim` without either",
        ),
        ("counts = true", "either `expr` with `model_expr`"),
        (
            "expr = \"1 > 0\"\nmodel_expr = \"1 > 0\"\nclaim = \"p\"\ncounts = true",
            "either `expr` or `claim`",
        ),
    ] {
        let error = index(claim).expect_err(problem).to_string();
        assert!(error.contains(problem), "expected `{problem}` in `{error}`");
    }
}

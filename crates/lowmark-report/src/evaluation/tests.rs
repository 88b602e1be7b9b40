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
        note: None,
    };
    let expr = |text| ClaimTest::Expr(Claim::parse(text).expect("a claim"));
    let parse = |test| Evaluation::parse("small.toml", SMALL, vec![claim(test)]);
    assert!(parse(expr("[x::r::a] > [x::r::b]")).is_ok());
    let error = parse(expr("[x::r::c] > 1"))
        .expect_err("no such column")
        .to_string();
    assert_eq!(error, "small.toml: claim `c`: no cell [x::r::c]");
    let error = parse(ClaimTest::Prose("p".to_owned()))
        .expect_err("no such figure")
        .to_string();
    assert!(
        error.contains("no figure in prose is called `p`"),
        "{error}"
    );
}

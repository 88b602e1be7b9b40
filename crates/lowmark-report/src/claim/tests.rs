//! The language, and every claim of the published index.

use super::*;
use crate::evaluation::{self, ClaimTest};
use proptest::prelude::*;

fn figures(cell: &CellId) -> Option<f64> {
    match (cell.row.as_str(), cell.column.as_str()) {
        ("one", _) => Some(1.0),
        ("two", _) => Some(2.0),
        ("zero", _) => Some(0.0),
        ("three (of 4)", "v3.6+x=y") => Some(3.0),
        _ => None,
    }
}

fn holds(text: &str) -> Option<bool> {
    Claim::parse(text).expect("a claim").judge(figures).holds()
}

#[test]
fn precedence_is_pythons() {
    for (text, expected) in [
        ("1 + 2 * 3 == 7", true),
        ("(1 + 2) * 3 == 9", true),
        ("10 - 4 - 3 == 3", true),
        ("16 / 4 / 2 == 2", true),
        ("-2 * -3 == 6", true),
        ("1 - -1 == 2", true),
        ("not 1 > 2 and 3 > 2", true),
        ("not (1 > 2 or 3 > 2)", false),
        ("1 > 2 and 1 > 2 or 2 > 1", true),
        ("1 < 2 < 3", true),
        ("1 < 3 < 2", false),
        ("3 > 2 != 1 <= 1 >= 0", true),
        (
            "abs(-1.5) == 1.5e0 and min(3, 2, 4) == 2 and max(3, 2, 4) == 4",
            true,
        ),
        ("min(5) == 5", true),
        ("(1 < 2) + (2 < 1) + (3 < 4) == 2", true),
        (".5 + 1e-1 < 0.61 and 1E2 == 100", true),
        ("0", false),
        ("1", true),
    ] {
        assert_eq!(holds(text), Some(expected), "{text}");
    }
}

#[test]
fn cells_have_figures_or_leave_the_claim_undecided() {
    assert_eq!(holds("[t::two::c] / [t::one::c] >= 2"), Some(true));
    assert_eq!(holds("[t::three (of 4)::v3.6+x=y] == 3"), Some(true));
    let claim = Claim::parse("1 > 2 and [t::x::c] > [t::one::c] + [t::x::c]").expect("a claim");
    assert_eq!(claim.cells().len(), 2);
    assert_eq!(
        claim.judge(figures),
        Judgement::Missing(vec![CellId::new("t", "x", "c")])
    );
    assert_eq!(claim.judge(|_| Some(f64::NAN)).holds(), None);
}

#[test]
fn division_by_zero_follows_ieee() {
    assert_eq!(holds("[t::one::c] / [t::zero::c] >= 1.5"), Some(true));
    assert_eq!(holds("[t::zero::c] / [t::zero::c] >= 0"), Some(false));
    assert_eq!(
        holds("max([t::zero::c] / [t::zero::c], 1) <= 2"),
        Some(false)
    );
    assert_eq!(
        holds("min(1, [t::zero::c] / [t::zero::c]) <= 2"),
        Some(false)
    );
    assert_eq!(holds("0 / 0"), Some(false));
}

#[test]
fn both_sides_of_every_comparison_are_kept() {
    let claim = Claim::parse("1 < [t::two::c] < 5 and [t::one::c] == 3").expect("a claim");
    let judgement = claim.judge(figures);
    assert_eq!(judgement.holds(), Some(false));
    let shown: Vec<String> = judgement
        .compared()
        .iter()
        .map(|c| format!("{} {} {} {}", c.left.value, c.op, c.right.value, c.holds))
        .collect();
    assert_eq!(shown, ["1 < 2 true", "2 < 5 true", "1 == 3 false"]);
    assert_eq!(judgement.compared()[0].right.text, "[t::two::c]");
    assert!(judgement.compared()[0].left.constant && !judgement.compared()[0].right.constant);
}

#[test]
fn errors_name_the_position() {
    for (text, column, problem) in [
        ("", 1, "expected a value, found the end"),
        ("1 +", 4, "expected a value, found the end"),
        (
            "1 2",
            3,
            "expected an operator or the end, found the number 2",
        ),
        ("(1", 3, "expected `)`, found the end"),
        ("[a::b]", 1, "expected `[table::row::column]`"),
        ("1 < [a::b::c", 5, "`[` without `]`"),
        ("é < 1", 1, "unexpected character `é`"),
        ("1 = 2", 3, "unexpected character `=`"),
        ("foo(1)", 1, "expected a value, found `foo`"),
        ("abs(1, 2)", 1, "abs takes one value, found 2"),
        ("min()", 5, "expected a value, found `)`"),
        ("1.2.3", 1, "expected a number"),
        ("1 < and", 5, "expected a value, found `and`"),
        ("1 < 2 )", 7, "expected an operator or the end, found `)`"),
    ] {
        let error = Claim::parse(text).expect_err(text);
        assert_eq!(
            (error.problem.as_str(), error.column),
            (problem, column),
            "{text}"
        );
        assert!(error.to_string().contains(&format!("character {column}")));
    }
}

#[test]
fn depth_is_bounded() {
    for text in [
        "(".repeat(100_000),
        "-".repeat(1_000),
        "not ".repeat(100_000),
    ] {
        assert_eq!(
            Claim::parse(&text).expect_err("too deep").problem,
            "nested too deeply"
        );
    }
    let long = vec!["1"; 100_000].join("+");
    assert_eq!(
        Claim::parse(&long).expect_err("too long").problem,
        "too many operators"
    );
}

/// What `expr` says of print is so, `model_expr` says the same of it, and no division lets a cell of 0 decide.
#[test]
fn every_published_claim_on_published_figures() {
    let (mut judged, mut guards) = (0, 0);
    for id in evaluation::ids() {
        let evaluation = evaluation::get(id).expect("embedded evaluations are valid");
        let values = evaluation.cell_values();
        for stated in &evaluation.claims {
            let ClaimTest::Expr(test) = &stated.test else {
                continue;
            };
            for (field, claim) in test.expressions() {
                let judgement = claim.judge(|c| crate::cell::figure(&values, c));
                let expected = field == "vacuous_unless" || stated.holds;
                assert_eq!(
                    judgement.holds(),
                    Some(expected),
                    "{id}: {field} of {}",
                    stated.text
                );
                assert!(!judgement.compared().is_empty(), "{id}: {}", stated.text);
                assert!(
                    field == "expr" || !divides_in(claim.expr()),
                    "{id}: {}",
                    claim.text()
                );
                guards += usize::from(field == "vacuous_unless");
            }
            judged += 1;
        }
    }
    assert_eq!((judged, guards), (69, 15));
}

fn divides_in(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Arith(ArithOp::Divide, ..))
        || expr.children().into_iter().any(divides_in)
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,60}") {
        let _ = Claim::parse(&text);
    }

    #[test]
    fn no_token_soup_panics(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "1", "2.5", "[t::one::c]", "[t::x::c]", "(", ")", "min(", "max(", "abs(", ",", "+", "-",
                "*", "/", "<", "<=", "==", "and", "or", "not", "0",
            ]),
            0..25,
        )
    ) {
        if let Ok(claim) = Claim::parse(&tokens.join(" ")) {
            let _ = claim.judge(figures);
            let _ = claim.judge(|_| Some(0.0));
        }
    }
}

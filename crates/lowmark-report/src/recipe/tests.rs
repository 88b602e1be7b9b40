//! The recipes that come with lowmark, and recipes that are wrong.

mod metrics;

use super::*;
use crate::evaluation;
use crate::reclaim::ReclaimFigures;
use std::path::Path;

const SMALL: &str = r#"
lowmark = 1
evaluation = "swap-readahead-shaohua-2014"
workload = "w"
metric = { value = "elapsed", unit = "s" }

[variant.default]
title = "as is"
set = { touches = 5 }

[variant.short]
title = "shorter"
set = { touches = 1, order = "none" }

[column.Vanilla]
kernel = "v3.13"
set = { kind = "column", only = true }

[table.elapsed]
machine = "m"
set = { kind = "table", half = 0.5 }

[row.Seq]
set = { order = "seq" }
"#;

fn recipe() -> Recipe {
    Recipe::parse("small.toml", SMALL).expect("a recipe")
}

fn shaohua() -> Evaluation {
    evaluation::get("swap-readahead-shaohua-2014").expect("embedded")
}

#[test]
fn every_recipe_is_embedded_and_fits_its_evaluation() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evaluations");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder of recipes")
        .filter_map(|entry| {
            let name = entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8");
            name.strip_suffix(".toml").map(str::to_owned)
        })
        .collect();
    names.sort();
    assert_eq!(ids().collect::<Vec<_>>(), names);
    for id in ids() {
        let recipe = get(id).expect("a valid recipe");
        let evaluation = evaluation::get(&recipe.evaluation).expect("its evaluation");
        assert_eq!(evaluation.id, id);
        for variant in &recipe.variants {
            let plans = recipe.cells(&evaluation, &variant.name).expect("cells");
            let printed = plans.iter().filter(|p| p.printed).count();
            // Of an evaluation in prose the cells are the recipe's own.
            let expected = if evaluation.tables.is_empty() {
                plans.len()
            } else {
                // The source does not say what a line counts that is printed twice under one name.
                let rows = evaluation.tables.iter().flat_map(|table| &table.rows);
                let unsaid = rows.filter(|row| row.name.ends_with("(second line)"));
                evaluation.cell_count() - unsaid.map(|row| row.values.len()).sum::<usize>()
            };
            assert_eq!(printed, expected, "{id}");
        }
    }
}

#[test]
fn swap_readahead_as_asked() {
    let recipe = get("swap-readahead").expect("embedded");
    let evaluation = evaluation::get("swap-readahead").expect("embedded");
    let plans = recipe.cells(&evaluation, DEFAULT_VARIANT).expect("cells");
    // The 48 printed cells, and the four sequential rows of a kernel that is only spoken of.
    assert_eq!(plans.len(), 52);
    let pc4 = &plans[4];
    assert_eq!(pc4.cell, CellId::new("hdd", "Seq Anon", "HughPC4"));
    assert_eq!(
        pc4.run.kernel,
        "v3.6+swapin_readahead=hugh-new,page_cluster=4"
    );
    assert_eq!(
        (pc4.run.machine.as_str(), pc4.run.workload.as_str()),
        ("desktop-900m-hdd", "swap-seq-rand")
    );
    assert_eq!(pc4.run.set["touches"], "5000000");
    assert_eq!(pc4.run.set["kind"], "anon-private");
    let (printed, extra) = plans.split_at(48);
    assert!(printed.iter().all(|p| p.printed) && extra.iter().all(|p| !p.printed));
    assert_eq!(extra[0].cell, CellId::new("hdd", "Seq Anon", "Konstantin"));
    assert_eq!(extra[3].cell, CellId::new("ssd", "Seq Shmem", "Konstantin"));
    let short = recipe.cells(&evaluation, "five-passes").expect("cells");
    assert_eq!(short[0].run.set["touches"], "1280000");
}

#[test]
fn the_more_particular_setting_wins() {
    let plans = recipe().cells(&shaohua(), "short").expect("cells");
    assert_eq!(plans.len(), 1);
    let expected: Settings = [
        ("half", "0.5"),
        ("kind", "column"),
        ("only", "true"),
        ("order", "none"),
        ("touches", "1"),
    ]
    .map(|(k, v)| (k.to_owned(), v.to_owned()))
    .into();
    assert_eq!(plans[0].run.set, expected);
}

#[test]
fn a_recipe_without_variants_has_a_default() {
    let text = SMALL.replace(
        "[variant.default]\ntitle = \"as is\"\nset = { touches = 5 }",
        "",
    );
    let text = text.replace(
        "[variant.short]\ntitle = \"shorter\"\nset = { touches = 1, order = \"none\" }",
        "",
    );
    let recipe = Recipe::parse("r", &text).expect("a recipe");
    assert_eq!(recipe.variants.len(), 1);
    assert_eq!(
        recipe
            .cells(&shaohua(), DEFAULT_VARIANT)
            .expect("cells")
            .len(),
        1
    );
}

#[test]
fn wrong_recipes_are_refused_with_their_place() {
    for (from, to, expected) in [
        (
            "lowmark = 1",
            "lowmark = 2",
            "small.toml:2: lowmark: expected 1, found 2",
        ),
        (
            "workload = \"w\"",
            "worklod = \"w\"",
            "unknown field `worklod`",
        ),
        ("workload = \"w\"", "", "missing field `workload`"),
        (
            "unit = \"s\"",
            "unit = \"m\"",
            "small.toml:5: metric: unit: expected one of ns, us, ms, cs, s, found `m`",
        ),
        (", unit = \"s\"", "", "metric: a time needs a unit"),
        (
            "unit = \"s\"",
            "unit = \"s\", name = \"x\"",
            "metric: a time has no name",
        ),
        (
            "\"elapsed\", unit",
            "\"counter\", unit",
            "metric: only a time has a unit",
        ),
        (
            "title = \"as is\"",
            "title = \"as is\"\njudged = false",
            "variant default, judged: expected true",
        ),
        (
            "[variant.default]",
            "[variant.usual]",
            "variant: expected one called `default`",
        ),
        ("[row.Seq]", "[row.Seq]\nkind = 1", "unknown field `kind`"),
        (
            "touches = 5 ",
            "touches = [5] ",
            "small.toml: TOML parse error at line 9",
        ),
        (
            "[row.Seq]",
            "[extra.Vanilla]\nkernel = \"k\"\ntext = \"t\"\nexpr = \"1\"\n[row.Seq]",
            "extra Vanilla: is a column",
        ),
        (
            "[row.Seq]",
            "[extra.X]\nkernel = \"k\"\ntext = \"t\"\nexpr = \"1 <\"\n[row.Seq]",
            "extra X: expected a value, found the end",
        ),
        (
            "[row.Seq]",
            "[extra.X]\nkernel = \"k\"\ntext = \"t\"\nexpr = \"1 < 2\"\n[row.Seq]",
            "expr names no cell of column `X`",
        ),
    ] {
        assert!(SMALL.contains(from), "{from}");
        let error = Recipe::parse("small.toml", &SMALL.replacen(from, to, 1)).expect_err(expected);
        let error = error.to_string();
        assert!(
            error.contains(expected),
            "expected `{expected}` in `{error}`"
        );
    }
    let error = get("nonsense").expect_err("no such recipe").to_string();
    assert!(
        error.contains("`nonsense`") && error.contains("swap-readahead"),
        "{error}"
    );
}

#[test]
fn recipes_must_fit_their_evaluation() {
    for (from, to, expected) in [
        (
            "[row.Seq]",
            "[row.Sequ]",
            "row Sequ: not in the evaluation; expected one of Seq, Random",
        ),
        (
            "[table.elapsed]",
            "[table.e]",
            "table e: not in the evaluation",
        ),
        (
            "[column.Vanilla]",
            "[column.V]",
            "column V: not in the evaluation",
        ),
        (
            "unit = \"s\"",
            "unit = \"cs\"",
            "the published figures are seconds, the metric is cs",
        ),
        (
            "-shaohua-2014\"",
            "\"",
            "expected `swap-readahead-shaohua-2014`, found `swap-readahead`",
        ),
    ] {
        let recipe = Recipe::parse("small.toml", &SMALL.replacen(from, to, 1)).expect("a recipe");
        let error = recipe.check(&shaohua()).expect_err(expected).to_string();
        assert!(
            error.contains(expected),
            "expected `{expected}` in `{error}`"
        );
    }
    let error = recipe()
        .cells(&shaohua(), "long")
        .expect_err("no such variant")
        .to_string();
    assert!(
        error.contains("variant long: expected one of default, short"),
        "{error}"
    );
}

/// The names by which recipes are checked are those of the published blocks.
#[test]
fn names_of_rows_are_those_in_print() {
    for id in ids() {
        let evaluation = evaluation::get(id).expect("embedded");
        let recipe = get(id).expect("embedded");
        recipe.check(&evaluation).expect("every row has a figure");
    }
    let evaluation = evaluation::get("vmscan-2010-x86_64-stress-highalloc").expect("embedded");
    let rows = |table: &str| {
        let table = evaluation.table(table).expect("a table");
        table
            .rows
            .iter()
            .map(|row| row.name.clone())
            .collect::<Vec<String>>()
    };
    assert_eq!(ReclaimFigures::vmscan_names(), rows("ftrace-vmscan"));
    assert_eq!(
        ReclaimFigures::congestion_names()[..12],
        rows("congestion-wait")[..12]
    );
    assert_eq!(ReclaimFigures::writepage_names().len(), 12);
}

#[test]
fn figures_that_there_are_not() {
    for (metric, problem) in [
        (
            "{ value = \"device\", name = \"seeks\" }",
            "expected one of write-rate",
        ),
        (
            "{ value = \"lock\", name = \"hold_max\" }",
            "expected one of acquisitions",
        ),
        ("{ value = \"dirty\" }", "which figure"),
        (
            "{ value = \"series\", name = \"gone\" }",
            "a series needs a unit",
        ),
        (
            "{ value = \"cpu\", unit = \"s\" }",
            "only a time has a unit",
        ),
        ("{ value = \"counter\", of = \"max\" }", "only a series"),
        (
            "{ value = \"vmscan\", name = \"Direct reclaim\" }",
            "small.toml:5: metric: name: expected one of Direct reclaims, ",
        ),
        (
            "{ value = \"congestion\", name = \"x\" }",
            "expected one of Direct number congest waited, ",
        ),
        (
            "{ value = \"writepage\", name = \"x\" }",
            "expected one of Direct writes anon sync, ",
        ),
        (
            "{ value = \"vmstat\", name = \"Swaps\" }",
            "expected one of Page Ins, ",
        ),
        ("{ value = \"rate\" }", "name: which figure is it?"),
        (
            "{ value = \"rate\", name = \"a\", of = \"max\" }",
            "of: only a series, and a rate with `each`",
        ),
        (
            "{ value = \"rate\", name = \"a\", window = \"1s\" }",
            "window: only a series",
        ),
        (
            "{ value = \"cpu\", phase = \"p\" }",
            "phase: only elapsed, series, rate and success",
        ),
        (
            "{ value = \"cpu\", each = \"p\" }",
            "each: only a rate or a series",
        ),
        (
            "{ value = \"series\", name = \"a\", unit = \"s\", window = \"1 s\" }",
            "window: expected a time like 60s or 5ms, found `1 s`",
        ),
        (
            "{ value = \"series\", name = \"a\", unit = \"s\", window = \"0s\" }",
            "window: expected a time",
        ),
        (
            "{ value = \"series\", name = \"a\", unit = \"s\", group = { count = 0, below = \"5ms\" } }",
            "group: count: expected a number above 0",
        ),
        (
            "{ value = \"series\", of = \"p90\" }",
            "unknown variant `p90`",
        ),
    ] {
        let text = SMALL.replace("{ value = \"elapsed\", unit = \"s\" }", metric);
        let error = Recipe::parse("small.toml", &text).expect_err(metric);
        assert!(error.to_string().contains(problem), "{error}");
    }
    // A row without a metric of its own is one of those of the recipe's.
    let text = SMALL.replace(
        "{ value = \"elapsed\", unit = \"s\" }",
        "{ value = \"vmscan\" }",
    );
    let recipe = Recipe::parse("small.toml", &text).expect("TOML");
    let error = recipe
        .check(&shaohua())
        .expect_err("no such row")
        .to_string();
    assert!(
        error.starts_with(
            "small.toml:23: row Seq: metric: the row's name: expected one of Direct reclaims, "
        ),
        "{error}"
    );
    let either = SMALL.to_owned() + "\n[claim.x]\nnote = \"neither\"\n";
    let error = Recipe::parse("small.toml", &either).expect_err("neither");
    assert!(
        error
            .to_string()
            .contains("either `before` and `after`, or `expr`, or `reason`"),
        "{error}"
    );
}

/// A figure that states a change is judged by the rule for changes, and a recipe cannot say otherwise.
#[test]
fn what_a_figure_states_says_how_it_is_judged() {
    let evaluation = evaluation::get("ioless-dirty-2011").expect("embedded");
    let text = recipe_text("ioless-dirty-2011");
    let change = text.replacen(
        "before = \"[dd100::system time::legacy]\"\nafter = \"[dd100::system time::ioless-4M]\"",
        "expr = \"[dd100::system time::ioless-4M] < 100\"",
        1,
    );
    assert_ne!(change, text);
    let error = Recipe::parse("r.toml", &change)
        .expect("TOML")
        .check(&evaluation);
    let error = error.expect_err("it states a change").to_string();
    assert!(error.contains("expected `before` and `after`"), "{error}");
    let value = text.replacen(
        "[claim.pause-1dd]\nexpr = \"5 <= [dd1::pause, median::ioless] <= 20\"",
        "[claim.pause-1dd]\nbefore = \"[dd1::a::b]\"\nafter = \"[dd1::a::c]\"",
        1,
    );
    assert_ne!(value, text);
    let error = Recipe::parse("r.toml", &value)
        .expect("TOML")
        .check(&evaluation);
    let error = error.expect_err("it states none").to_string();
    assert!(error.contains("states no change"), "{error}");
    let error = Recipe::parse("r.toml", &value.replace("[dd1::a::b]", "dd1::a::b"));
    let error = error.expect_err("no cell").to_string();
    assert!(
        error.contains("claim pause-1dd: before: expected a cell"),
        "{error}"
    );
}

fn recipe_text(id: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evaluations");
    std::fs::read_to_string(path.join(format!("{id}.toml"))).expect("the recipe")
}

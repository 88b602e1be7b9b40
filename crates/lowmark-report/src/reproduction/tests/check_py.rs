//! Verdicts are those of `evaluations/published/check.py`, whoever computes them.

use super::*;
use crate::needed;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Reads `[[evaluation, [[table, row, column, value], ...]], ...]`, says what `model_verdict` says of each claim with cells.
const SCRIPT: &str = r#"
import importlib.util, json, pathlib, sys, tomllib
folder = pathlib.Path(sys.argv[1])
spec = importlib.util.spec_from_file_location("check", folder / "check.py")
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)
index = tomllib.loads((folder / "index.toml").read_text())["evaluations"]
claims = {e["id"]: [c for c in e["claims"] if "expr" in c] for e in index}
verdicts = []
for name, cells in json.load(sys.stdin):
    cells = {(t, r, c): v for t, r, c, v in cells}
    verdicts.append([check.model_verdict(c, lambda *cell: cells[cell]) for c in claims[name]])
json.dump(verdicts, sys.stdout)
"#;

/// Numbers below 2^31 in an order without a pattern, the same every time.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as f64
    }

    /// From 0 to 1.
    fn part(&mut self) -> f64 {
        self.next() / f64::from(1_u32 << 31)
    }
}

/// Figures that a model might give: those in print, all the baseline, near either, zero, and anything.
fn synthetic(evaluation: &Evaluation) -> Vec<CellValues> {
    let mut draw = Draw(evaluation.claims.len() as u64);
    let printed = evaluation.cell_values();
    let baseline = |cell: &CellId| {
        let table = evaluation.table(&cell.table).expect("a table");
        figure(&printed, &cell.in_column(&table.columns[0])).expect("a figure")
    };
    let mut sets = Vec::new();
    for kind in 0..24 {
        let value = |cell: &CellId| {
            let print = figure(&printed, cell).expect("a figure");
            let near = |value: f64, width: f64, part: f64| value * (1.0 + width * (part - 0.5));
            match kind {
                0 => print,
                1 => baseline(cell),
                2 => 0.0,
                3 => 2.0 * print,
                4..8 => near(print, 0.2, draw.part()),
                8..12 => near(print, 1.0, draw.part()),
                12..16 => near(baseline(cell), 0.02, draw.part()),
                16..20 => baseline(cell) + f64::from(u8::from(draw.part() > 0.9)),
                _ => print * 3.0 * draw.part(),
            }
        };
        let mut value = value;
        sets.push(
            printed
                .keys()
                .map(|c| (c.clone(), Some(value(c))))
                .collect(),
        );
    }
    sets
}

#[test]
fn verdicts_are_those_of_check_py() {
    let python = Command::new("python3")
        .args(["-c", "import tomllib"])
        .output();
    if !python.is_ok_and(|done| done.status.success()) {
        return needed::absent("there is no python3 with tomllib (3.11 or later)");
    }
    let mut asked = Vec::new();
    let mut ours = Vec::new();
    for id in evaluation::ids().filter(|id| !id.starts_with("ioless")) {
        let evaluation = get(id);
        for model in synthetic(&evaluation) {
            let result = Reproduction::new(&evaluation, None, &model);
            let verdicts = result.claims.iter().map(|claim| match claim.verdict {
                Verdict::BorneOut => "borne out",
                Verdict::Contradicted => "contradicted",
                Verdict::Vacuous => "vacuous",
                Verdict::NotCounted => "not counted",
                Verdict::NotModelled => "not modelled",
            });
            ours.push(verdicts.collect::<Vec<_>>());
            let cells = model.iter().map(|(c, v)| (&c.table, &c.row, &c.column, v));
            asked.push(serde_json::json!([id, cells.collect::<Vec<_>>()]));
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evaluations/published");
    let mut python = Command::new("python3")
        .args(["-B", "-c", SCRIPT])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let mut input = python.stdin.take().expect("it is piped");
    let text = serde_json::to_vec(&asked).expect("JSON");
    input.write_all(&text).expect("python3 reads");
    drop(input);
    let done = python.wait_with_output().expect("python3 ends");
    assert!(done.status.success());
    let theirs: Vec<Vec<String>> = serde_json::from_slice(&done.stdout).expect("verdicts");
    assert_eq!(theirs.len(), ours.len());
    for (at, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
        assert_eq!(theirs, ours, "{}, set {at}", asked[at][0]);
    }
    // The sets are no use if one verdict never comes.
    for (verdict, least) in [
        ("borne out", 200),
        ("contradicted", 200),
        ("vacuous", 10),
        ("not counted", 8 * 24),
    ] {
        let found = ours.iter().flatten().filter(|v| **v == verdict).count();
        assert!(found >= least, "{verdict}: {found}");
    }
}

/// The script's own checks of the carried files, those that `--strict` adds included.
#[test]
fn the_published_files_pass_their_own_check() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evaluations/published");
    let done = Command::new("python3")
        .arg("-B")
        .arg(folder.join("check.py"))
        .arg("--strict")
        .output();
    let Ok(done) = done else {
        return needed::absent("there is no python3");
    };
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text}");
    assert!(
        text.contains("74 claims (66 count), 0 shape errors"),
        "{text}"
    );
}

//! The program takes the commands that README and docs show; the program's output has the lines that the README shows.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Pages of documentation, with their names.
fn pages() -> Vec<(String, String)> {
    let docs = std::fs::read_dir(root().join("docs")).expect("docs");
    let docs = docs.map(|entry| entry.expect("readable").path());
    let pages = docs.chain([root().join("README.md")]);
    pages
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("text");
            (path.display().to_string(), text)
        })
        .collect()
}

/// Arguments of every command line of lowmark on a page, at a prompt or in the midst of text.
fn command_lines(page: &str) -> Vec<&str> {
    let at_prompts = page.lines().filter_map(|line| {
        let line = line.strip_prefix("$ ")?;
        let command = line.split(" #").next().unwrap_or(line);
        let ways = ["lowmark ", "cargo run --release -- "];
        ways.iter().find_map(|way| command.strip_prefix(way))
    });
    let within_text = page.lines().flat_map(|line| {
        let spans = line.split('`').skip(1).step_by(2);
        spans.filter_map(|span| span.strip_prefix("lowmark "))
    });
    at_prompts.chain(within_text).collect()
}

#[test]
fn commands_that_are_shown_are_taken() {
    let mut seen = 0;
    for (page, text) in pages() {
        // `lowmark VERB` stands for all of them, and `lowmark = 1` begins a workload.
        for line in command_lines(&text)
            .into_iter()
            .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()))
        {
            let output = Command::new(env!("CARGO_BIN_EXE_lowmark"))
                .args(line.split_whitespace())
                .arg("--help")
                .output()
                .expect("it runs");
            let problem = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{page}: lowmark {line}\n{problem}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen} commands were found");
}

/// Who builds or installs lowmark has the runner of guests beside it, and lowmark finds it there.
#[test]
fn the_runner_comes_with_lowmark() {
    let output = Command::new(env!("CARGO_BIN_EXE_lowmark"))
        .args(["doctor", "--format", "json"])
        .env_remove("LOWMARK_RUNNER")
        .output()
        .expect("it runs");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let checks = document["checks"].as_array().expect("checks");
    let runner = checks.iter().find(|check| check["name"] == "runner");
    let runner = runner.expect("it is looked for");
    assert_eq!(runner["state"], "good", "{runner}");
    assert_eq!(runner["detail"], env!("CARGO_BIN_EXE_lowmark-runner"));
}

/// `cargo run` in the root of the project runs lowmark, though there are other programs in it.
#[test]
fn cargo_run_knows_the_program() {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let defaults: Vec<&Value> = packages
        .iter()
        .map(|package| &package["default_run"])
        .filter(|program| !program.is_null())
        .collect();
    assert_eq!(defaults, ["lowmark"]);
}

/// Whether a line of an example is a line of the output; of a line that ends with an ellipsis only the beginning is shown.
fn is_shown(line: &str, shown: &str) -> bool {
    match shown.strip_suffix('…') {
        Some(beginning) => line.starts_with(beginning.trim_end()),
        None => line.trim_end() == shown.trim_end(),
    }
}

/// Verbs whose examples are run: none of them changes or records this host.
const RUN: [&str; 6] = ["bisect", "compare", "report", "reproduce", "whatif", "why"];

/// Examples that begin with `lowmark`; the one that runs all of swap-readahead with `cargo run` takes a minute and is left out.
#[test]
fn examples_of_the_readme_come_out() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("text");
    let blocks = readme.split("```console\n$ lowmark ").skip(1);
    let mut compared = 0;
    for block in blocks {
        let (command, rest) = block.split_once('\n').expect("a line");
        let example = rest.split("```").next().expect("a block");
        // A list of commands shows no output, and some of them record this host.
        if example.is_empty() || example.lines().any(|line| line.starts_with("$ ")) {
            continue;
        }
        let verb = command.split_whitespace().next().unwrap_or_default();
        assert!(
            RUN.contains(&verb),
            "lowmark {command}: is it safe to run this example?"
        );
        let output = Command::new(env!("CARGO_BIN_EXE_lowmark"))
            .args(command.split_whitespace())
            .current_dir(root())
            .output()
            .expect("it runs");
        let output = String::from_utf8_lossy(&output.stdout);
        let mut lines = output.lines();
        for shown in example.lines().filter(|&line| line != "…") {
            assert!(
                lines.any(|line| is_shown(line, shown)),
                "lowmark {command}: this line of the README does not come out, or not there:\n{shown}"
            );
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared} lines were compared");
}

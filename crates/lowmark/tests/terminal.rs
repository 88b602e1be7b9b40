//! What terminals and shells are given: colour, lines that fit, completions, manual pages.

mod common;

use common::{Place, on_terminal};
use std::process::Command;

/// Columns of the terminal of these tests.
const COLUMNS: u16 = 80;

/// Lowmark in a directory, with the variables that colour depends on.
fn lowmark(place: &Place, args: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowmark"));
    command.current_dir(place.path(".")).args(args);
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    command.envs(variables.iter().copied());
    command
}

#[test]
fn colour_is_for_terminals_unless_asked_otherwise() {
    let place = Place::new();
    fn list<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&["list", "machines"], more].concat()
    }
    let on = |more: &[&str], variables: &[(&str, &str)]| {
        let done = on_terminal(lowmark(&place, &list(more), variables), COLUMNS);
        done.good().contains("\x1b[")
    };
    assert!(on(&[], &[]));
    assert!(!on(&[], &[("NO_COLOR", "1")]));
    assert!(!on(&[], &[("TERM", "dumb")]));
    assert!(!on(&["--color", "never"], &[]));
    assert!(on(&["--color=always"], &[("NO_COLOR", "1")]));
    let piped = |more: &[&str]| place.lowmark(&list(more)).good().contains("\x1b[");
    assert!(!piped(&[]));
    assert!(!piped(&["--color=auto"]));
    assert!(piped(&["--color=always"]));
    // Before the verb as well.
    assert!(
        place
            .lowmark(&["--color=always", "list", "machines"])
            .good()
            .contains("\x1b[")
    );
}

#[test]
fn shells_get_completions() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.lowmark(&["completions", shell]).good();
        for word in ["reproduce", "kernel-runs", "evaluations"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    place
        .lowmark(&["completions", "csh"])
        .error(&["csh", "bash"]);
}

#[test]
fn manual_pages_cover_every_verb() {
    let place = Place::new();
    let page = place.lowmark(&["man"]).good();
    assert!(page.contains(".TH lowmark 1"), "{page}");
    let pages = place.path("made/man1");
    let path = pages.to_string_lossy();
    assert_eq!(place.lowmark(&["man", &path]).good(), "");
    assert_eq!(
        std::fs::read_to_string(pages.join("lowmark.1")).expect("a page"),
        page
    );
    for verb in ["run", "compare", "report", "twin", "kernels-fetch"] {
        let page = std::fs::read_to_string(pages.join(format!("lowmark-{verb}.1")));
        let page = page.unwrap_or_else(|error| panic!("{verb}: {error}"));
        assert!(page.contains(".SH SYNOPSIS"), "{verb}");
    }
    place.write("file", "");
    place
        .lowmark(&["man", "file"])
        .error(&["file: cannot write"]);
}

/// What is wider than the terminal would be broken by it within words.
#[test]
fn lists_and_help_fit_the_terminal() {
    let place = Place::new();
    let fits = |args: &[&str]| {
        let screen = on_terminal(lowmark(&place, args, &[("NO_COLOR", "1")]), COLUMNS).good();
        let wide = screen
            .lines()
            .find(|line| line.chars().count() > usize::from(COLUMNS));
        assert_eq!(wide, None, "{args:?}");
        screen
    };
    for topic in [
        "workloads",
        "machines",
        "kernels",
        "mechanisms",
        "sysctls",
        "evaluations",
    ] {
        fits(&["list", topic]);
    }
    let kernels = fits(&["list", "kernels"]);
    let whole = place.lowmark(&["list", "kernels"]).good();
    let words = |text: &str| {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        words.sort();
        words
    };
    assert_eq!(words(&kernels), words(&whole), "a word is broken");
    place.write(
        "trace.txt",
        "  rl-7 [001] ..... 5.000000: mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL\n",
    );
    let report = fits(&["report", "trace.txt"]);
    assert!(report.contains("Not computed"), "{report}");
    for verb in ["twin", "kernels", "reproduce"] {
        fits(&[verb, "--help"]);
    }
}

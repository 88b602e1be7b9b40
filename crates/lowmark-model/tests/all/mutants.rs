//! Comparing the model with real kernels catches lies: six decisions of the model are turned round, one after the
//! other, and each has to show in its error against what kernels counted (`real_kernels.rs`).
//!
//! The lies are told to a copy of the sources, so that the model has no switch for them. The copy has one for all: it is built
//! once, and a variable of the environment says which lie the copy tells. The copy is a workspace of links with a source
//! directory of its own; cargo keeps the copy's build for the next run of this test.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A decision, and its opposite.
struct Lie {
    what: &'static str,
    /// Below `src` of the model.
    file: &'static str,
    /// An expression, once in the file.
    truth: &'static str,
    /// The expression that the copy evaluates in place of the truth while it tells this lie.
    lie: &'static str,
    /// A counter that gives it away.
    seen_in: &'static str,
}

const LIES: [Lie; 6] = [
    Lie {
        what: "a page that was used once since it was looked at is reclaimed like an unused one",
        file: "mm/reclaim/vmscan/page_list.rs",
        truth: "young == 0 || sc.mode.is_lumpy()",
        lie: "young <= 1 || sc.mode.is_lumpy()",
        seen_in: "pgscan",
    },
    Lie {
        what: "twice as many pages are isolated together (SWAP_CLUSTER_MAX)",
        file: "mm/reclaim/vmscan/classic/mod.rs",
        truth: "left[lru as usize].min(SWAP_CLUSTER_MAX)",
        lie: "left[lru as usize].min(2 * SWAP_CLUSTER_MAX)",
        seen_in: "swap_ra_hit",
    },
    Lie {
        what: "a direct reclaimer goes on until it has reclaimed twice as many pages (SWAP_CLUSTER_MAX)",
        file: "mm/reclaim/vmscan/mod.rs",
        truth: "ScanControl::new(false, SWAP_CLUSTER_MAX, order, gfp.highest())",
        lie: "ScanControl::new(false, 2 * SWAP_CLUSTER_MAX, order, gfp.highest())",
        seen_in: "pgsteal_direct",
    },
    Lie {
        what: "survivors of a batch go back in the opposite order",
        file: "mm/reclaim/vmscan/classic/isolate.rs",
        truth: "self.lru_add_all(target.lruvec, survivors)",
        lie: "self.lru_add_all(target.lruvec, &survivors.iter().rev().copied().collect::<Vec<_>>())",
        seen_in: "pgmajfault",
    },
    Lie {
        what: "windows of swap-in readahead begin at the fault instead of at a multiple of their size",
        file: "mm/swap/swapfile.rs",
        truth: "offset & !(window - 1)",
        lie: "offset",
        seen_in: "swap_ra_hit",
    },
    Lie {
        what: "kswapd sleeps at the low watermark already: the high one lies no higher",
        file: "mm/alloc/mmzone/watermarks.rs",
        truth: "[min, min + gap, min + 2 * gap]",
        lie: "[min, min + gap, min + gap]",
        seen_in: "pageoutrun",
    },
];

/// Manifest of the copy's workspace, to which packages and dependencies are added. The model is optimised a little: seven short
/// runs are worth no more.
const MANIFEST: &str = "[workspace]\nresolver = \"3\"\nmembers = [\"judge\"]\n\n[profile.dev]\ndebug = false\n\n\
    [profile.dev.package.lowmark-model]\nopt-level = 1\n";
const JUDGE: &str = "[package]\nname = \"judge\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
    lowmark-model = { workspace = true }\nlowmark-record = { workspace = true }\n\
    lowmark-spec = { workspace = true }\n";

/// Number of the lie that the copy tells.
const VARIABLE: &str = "LOWMARK_LIE";

/// A function that the copy's `lib.rs` has and the model's has not.
const TOLD: &str = r#"
/// Whether the lie of this number is told.
fn told(lie: usize) -> bool {
    static TOLD: std::sync::LazyLock<Option<usize>> =
        std::sync::LazyLock::new(|| std::env::var("{VARIABLE}").ok()?.parse().ok());
    *TOLD == Some(lie)
}
"#;

struct Copy {
    root: PathBuf,
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Replaces whatever is there.
fn link(original: &Path, link: &Path) -> io::Result<()> {
    match fs::remove_file(link) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => symlink(original, link),
    }
}

/// Writes a file unless it holds the text already: cargo goes by times.
fn write(path: &Path, text: &str) -> io::Result<()> {
    match fs::read_to_string(path) {
        Ok(old) if old == text => Ok(()),
        _ => fs::write(path, text),
    }
}

/// A source of the model with the lies that belong in it, each beside the truth.
fn with_lies(file: &Path, mut text: String) -> String {
    if file == Path::new("lib.rs") {
        text.push_str(&TOLD.replace("{VARIABLE}", VARIABLE));
    }
    let lies = LIES.iter().enumerate();
    for (number, Lie { truth, lie, .. }) in lies.filter(|(_, lie)| Path::new(lie.file) == file) {
        let times = text.matches(truth).count();
        assert_eq!(times, 1, "{}: expected this once: {truth}", file.display());
        let either = format!("(if crate::told({number}) {{ {lie} }} else {{ {truth} }})");
        text = text.replace(truth, &either);
    }
    text
}

/// Copies the sources below a directory of the model's `src`, each with its lies, and removes files of the copy that the model
/// no longer has.
fn copy(from: &Path, to: &Path, src: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(to)? {
        let path = entry?.path();
        if !from.join(path.file_name().unwrap_or_default()).exists() {
            if path.is_dir() {
                fs::remove_dir_all(path)?
            } else {
                fs::remove_file(path)?
            }
        }
    }
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &target, src)?
        } else {
            let file = path.strip_prefix(src).expect("a source of the model");
            write(&target, &with_lies(file, fs::read_to_string(&path)?))?
        }
    }
    Ok(())
}

impl Copy {
    fn make() -> io::Result<Copy> {
        let original = workspace().canonicalize()?;
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants");
        let manifest = fs::read_to_string(original.join("Cargo.toml"))?;
        // Packages, lints and dependencies as they are; members and profiles of its own.
        let from = manifest.find("[workspace.package]").unwrap_or(0);
        let to = manifest.find("[profile").unwrap_or(manifest.len());
        let model = root.join("crates/lowmark-model");
        fs::create_dir_all(&model)?;
        fs::create_dir_all(root.join("judge/src"))?;
        fs::create_dir_all(root.join("judge/tests"))?;
        write(
            &root.join("Cargo.toml"),
            &format!("{MANIFEST}\n{}", &manifest[from..to]),
        )?;
        fs::copy(original.join("Cargo.lock"), root.join("Cargo.lock"))?;
        write(&root.join("judge/Cargo.toml"), JUDGE)?;
        write(&root.join("judge/src/lib.rs"), "")?;
        let sources = original.join("crates/lowmark-model");
        link(
            &sources.join("tests/all/real_kernels.rs"),
            &root.join("judge/tests/real_kernels.rs"),
        )?;
        link(&sources.join("Cargo.toml"), &model.join("Cargo.toml"))?;
        link(&sources.join("benches"), &model.join("benches"))?;
        for name in [
            "crates/lowmark-spec",
            "crates/lowmark-record",
            "machines",
            "workloads",
        ] {
            link(&original.join(name), &root.join(name))?;
        }
        let sources = sources.join("src");
        copy(&sources, &model.join("src"), &sources)?;
        Ok(Copy { root })
    }

    /// Judges the copy, which tells this lie or none, by what kernels counted: the counters that are off, a line each.
    fn judge(&self, lie: Option<usize>) -> Vec<String> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args([
                "test",
                "--offline",
                "--quiet",
                "--package",
                "judge",
                "--test",
                "real_kernels",
            ])
            .args([
                "--target-dir",
                "target",
                "--",
                "counts_are_those_of_real_kernels",
            ])
            .current_dir(&self.root)
            .env_remove("RUSTFLAGS")
            .env_remove(VARIABLE);
        if let Some(number) = lie {
            cargo.env(VARIABLE, number.to_string());
        }
        let output = cargo.output().expect("cargo starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            said.contains("running 1 test"),
            "the copy cannot be built:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let off = said.lines().filter(|line| line.contains(", real "));
        let off: Vec<String> = off.map(|line| line.trim().to_owned()).collect();
        assert_eq!(off.is_empty(), output.status.success(), "{said}");
        off
    }
}

#[test]
fn the_twin_catches_lies() {
    let copy = Copy::make().expect("a copy of the sources");
    assert_eq!(copy.judge(None), Vec::<String>::new(), "the truth");
    for (number, lie) in LIES.iter().enumerate() {
        let off = copy.judge(Some(number));
        println!("{}:\n  {}", lie.what, off.join("\n  "));
        let seen = format!(" {}: ", lie.seen_in);
        assert!(
            off.iter().any(|line| line.contains(&seen)),
            "{}: not seen in {}, but in {off:#?}",
            lie.what,
            lie.seen_in
        );
    }
}

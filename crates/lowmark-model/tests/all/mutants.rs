//! Comparing the model with real kernels catches lies: five decisions of the model are turned round, one after the
//! other, and each has to show in its error against what kernels counted (`real_kernels.rs`).
//!
//! The lies are told to a copy of the sources, so that the model has no switch for them. The copy is a workspace of
//! links with a source directory of its own, and keeps what it has built for the next time.

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
    truth: &'static str,
    lie: &'static str,
    /// A counter that gives it away.
    seen_in: &'static str,
}

const LIES: [Lie; 5] = [
    Lie {
        what: "a page that was used once since it was looked at is reclaimed like an unused one",
        file: "mm/reclaim/vmscan/page_list.rs",
        truth: "if young == 0 || sc.mode.is_lumpy() {",
        lie: "if young <= 1 || sc.mode.is_lumpy() {",
        seen_in: "pgscan",
    },
    Lie {
        what: "twice as many pages are isolated together (SWAP_CLUSTER_MAX)",
        file: "mm/types.rs",
        truth: "const SWAP_CLUSTER_MAX: u64 = 32;",
        lie: "const SWAP_CLUSTER_MAX: u64 = 64;",
        seen_in: "pgsteal_kswapd",
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
        truth: "let start = offset & !(window - 1);",
        lie: "let start = offset;",
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

/// What the copy consists of beside the members, which are added to it.
const MANIFEST: &str = "[workspace]\nresolver = \"3\"\nmembers = [\"judge\"]\n";
const JUDGE: &str = "[package]\nname = \"judge\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
    lowmark-model = { workspace = true }\nlowmark-record = { workspace = true }\n\
    lowmark-spec = { workspace = true }\n";

struct Copy {
    root: PathBuf,
    /// Of the original model.
    sources: PathBuf,
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

/// Copies the sources below a directory, and takes away what is not there any more.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
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
            copy(&path, &target)?
        } else {
            write(&target, &fs::read_to_string(&path)?)?
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
        copy(&sources, &model.join("src"))?;
        Ok(Copy { root, sources })
    }

    /// Judges the copy by what kernels counted: the counters that are off, a line each.
    fn judge(&self) -> Vec<String> {
        let output = Command::new(env!("CARGO"))
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
            .output()
            .expect("cargo starts");
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

    /// What the judge says of a lie.
    fn tell(&self, lie: &Lie) -> Vec<String> {
        let path = self.root.join("crates/lowmark-model/src").join(lie.file);
        let text = fs::read_to_string(self.sources.join(lie.file)).expect("a source");
        assert_eq!(
            text.matches(lie.truth).count(),
            1,
            "{}: expected this once: {}",
            lie.file,
            lie.truth
        );
        fs::write(&path, text.replace(lie.truth, lie.lie)).expect("written");
        let off = self.judge();
        fs::write(&path, text).expect("written");
        off
    }
}

#[test]
fn the_twin_catches_lies() {
    let copy = Copy::make().expect("a copy of the sources");
    assert_eq!(copy.judge(), Vec::<String>::new(), "the truth");
    for lie in &LIES {
        let off = copy.tell(lie);
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

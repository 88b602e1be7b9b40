//! Which workloads are run, where their recordings go, and where kept ones are.

use super::Args;
use lowmark_spec::random_load::{RandomLoad, class_of};
use miette::{IntoDiagnostic, WrapErr, miette};
use std::path::{Path, PathBuf};

/// A workload that is run on both sides.
pub(super) struct Load {
    /// Name of its file without the end.
    pub(super) name: String,
    /// Built-in name or path.
    pub(super) target: String,
    /// Class of a random load; of any other workload its name.
    pub(super) class: String,
    /// Where recordings go.
    pub(super) out: Option<PathBuf>,
    /// Where the kernel's recordings are, if it is not run.
    pub(super) kernel_runs: Option<PathBuf>,
}

/// The loads that were asked for. Random ones are written, each before anything runs.
pub(super) fn of(args: &Args) -> miette::Result<Vec<Load>> {
    if let (Some(count), Some(seed)) = (args.random, args.ask.seed) {
        let dir = match &args.running.out {
            Some(dir) => dir.clone(),
            None => format!("twin-random-{seed}").into(),
        };
        return random(count, seed, args.knobs, &dir);
    }
    let targets = match (&args.kept, args.workloads.is_empty()) {
        (Some(dir), true) => kept(dir)?,
        _ => args.workloads.clone(),
    };
    let single = targets.len() == 1;
    if let (false, Some(dir)) = (single, &args.kernel_runs) {
        return Err(miette!(
            help = "of several workloads use --kept DIR, which has a directory for each",
            "--kernel-runs {}: its recordings are of one workload, found {}",
            dir.display(),
            targets.len()
        ));
    }
    let load = |target: String| {
        let stem = Path::new(&target).file_stem();
        let name = stem.map_or(target.clone(), |stem| stem.to_string_lossy().into_owned());
        // A file that cannot be read is an error of the plan.
        let class = std::fs::read_to_string(&target)
            .ok()
            .and_then(|text| class_of(&text));
        let below = |dir: &PathBuf| dir.join(&name);
        Load {
            class: class.map_or(name.clone(), |class| class.name().to_owned()),
            out: match (&args.running.out, single) {
                (Some(dir), false) => Some(below(dir)),
                (out, _) => out.clone(),
            },
            kernel_runs: args.kept.as_ref().map(below).or(args.kernel_runs.clone()),
            name,
            target,
        }
    };
    Ok(targets.into_iter().map(load).collect())
}

/// Writes the loads of a seed into a directory.
fn random(count: u64, seed: u64, knobs: bool, dir: &Path) -> miette::Result<Vec<Load>> {
    let cannot = |path: &Path| format!("{}: cannot write", path.display());
    std::fs::create_dir_all(dir)
        .into_diagnostic()
        .wrap_err_with(|| cannot(dir))?;
    let load = |number| {
        let load = RandomLoad::new(seed, number, knobs);
        let path = dir.join(format!("{}.toml", load.name));
        std::fs::write(&path, &load.text)
            .into_diagnostic()
            .wrap_err_with(|| cannot(&path))?;
        Ok(Load {
            out: Some(dir.join(&load.name)),
            target: path.to_string_lossy().into_owned(),
            class: load.class.name().to_owned(),
            name: load.name,
            kernel_runs: None,
        })
    };
    (0..count).map(load).collect()
}

/// The workloads in a directory, in the order of their numbers.
fn kept(dir: &Path) -> miette::Result<Vec<String>> {
    let cannot = || format!("--kept {}: cannot read the directory", dir.display());
    let entries = std::fs::read_dir(dir)
        .into_diagnostic()
        .wrap_err_with(cannot)?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.into_diagnostic().wrap_err_with(cannot)?.path();
        if path.extension().is_some_and(|end| end == "toml") && path.is_file() {
            files.push(path.to_string_lossy().into_owned());
        }
    }
    files.sort_by_key(|path| (path.len(), path.clone()));
    if !files.is_empty() {
        Ok(files)
    } else {
        Err(miette!(
            help = "name the workloads whose runs were kept, or give what `lowmark twin --random N --seed S --out DIR` kept",
            "--kept {}: there is no .toml file",
            dir.display()
        ))
    }
}

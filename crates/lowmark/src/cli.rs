//! The command line, and the flags that verbs share.

use crate::verb::Verb;
use clap::{Args, Parser, ValueEnum};
use miette::miette;
use std::path::PathBuf;
use std::time::Duration;

/// Linux memory reclaim that you can run, watch and take apart
#[derive(Debug, Parser)]
#[command(name = "lowmark", version, arg_required_else_help = true)]
#[command(
    after_help = "Example:\n  lowmark compare swap-small --kernel v3.6 --kernel v3.14\n\n\
    Exit status: 0 all went well; 1 a run did not complete, a claim is contradicted, or nothing was found; 2 an error; \
    3 a guest started and failed."
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
    /// Whether to colour
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

/// When there is colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On terminals, unless NO_COLOR is set or TERM is `dumb`
    Auto,
    /// Everywhere, for `less -R`
    Always,
    /// Nowhere
    Never,
}

/// What is run.
#[derive(Debug, Clone, Args)]
pub(crate) struct Ask {
    /// Kernel to run: VERSION[+MECHANISM[=VARIANT]]...[,SYSCTL=VALUE]...; given again, one more kernel is run
    #[arg(long = "kernel", value_name = "KERNEL")]
    pub(crate) kernels: Vec<String>,
    /// Machine in place of the workload's: a name (see `lowmark list machines`) or a path to a .toml file
    #[arg(long, value_name = "NAME|PATH")]
    pub(crate) machine: Option<String>,
    /// Sets a parameter, a field of the machine or a sysctl; once for each name. 0..5, 0..100/20 or [256M,512M] in
    /// place of a value is a run for each, here and in --kernel
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
    /// Seed of all random choices
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Runs everything this many times, with the seeds N, N+1, ..., each on another boot of the machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) repeat: Option<u64>,
    /// What runs it
    #[arg(long, value_enum, value_name = "BACKEND", default_value_t = Backend::Model)]
    pub(crate) on: Backend,
    /// With --on guest, the kernel image: a path, or a version that was fetched; given again, one more is run
    #[arg(long = "image", value_name = "PATH|VERSION")]
    pub(crate) images: Vec<String>,
    /// With --on guest or host, the time after which it is stopped, s [default: 600]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: Option<u64>,
    /// With --on guest, the time from one look at counters to the next, ms [default: 250]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub(crate) interval: Option<u64>,
    /// With --on guest, what executes it [default: KVM where it works]
    #[arg(long, value_enum, value_name = "ACCEL")]
    pub(crate) accel: Option<Accel>,
    /// With --on host, changes settings and swap of the whole system while the run lasts
    #[arg(long)]
    pub(crate) machine_wide: bool,
}

/// How it is run, and where recordings go.
#[derive(Debug, Args)]
pub(crate) struct Running {
    /// Runs at the same time [default: one for each CPU; one guest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Keeps the recordings: a directory for each run below DIR
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Records the tracepoints and the state of memory over the run as well
    #[arg(long, requires = "out")]
    pub(crate) events: bool,
    /// No progress and no remarks on stderr, only errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// How the result is printed.
#[derive(Debug, Args)]
pub(crate) struct Printing {
    /// How to print
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Table)]
    pub(crate) format: Format,
}

/// How runs side by side are printed.
#[derive(Debug, Args)]
pub(crate) struct TablePrinting {
    /// How to print
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = TableFormat::Table)]
    pub(crate) format: TableFormat,
    /// Figure to show, a row of `lowmark compare`; given again, one more [default: all; of a sweep those that are good
    /// or bad and vary]
    #[arg(long = "metric", value_name = "NAME")]
    pub(crate) metrics: Vec<String>,
    /// Writes a Parquet file with a row for each run: parameters, kernel, seed and all figures
    #[arg(long, value_name = "FILE.parquet")]
    pub(crate) runs: Option<PathBuf>,
}

/// The page that is written besides.
#[derive(Debug, Args)]
pub(crate) struct Paging {
    /// Writes the same as a page, with plots: one .html file that needs nothing else. An existing file is replaced
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// Form of a table of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// For people
    Table,
    /// For programs
    Json,
    /// For spreadsheets: a line for each value of what is swept, with all figures
    Csv,
    /// For mails and pages
    Markdown,
}

/// Form of what is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

/// What executes a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Accel {
    /// The machine's own processor
    Kvm,
    /// QEMU's translator
    Tcg,
}

/// What runs a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// The model, in virtual time
    Model,
    /// A kernel image in a virtual machine
    Guest,
    /// The kernel of this system, the workload in a memory cgroup
    Host,
}

impl Backend {
    /// Its name after --on.
    fn name(self) -> &'static str {
        match self {
            Backend::Model => "model",
            Backend::Guest => "guest",
            Backend::Host => "host",
        }
    }
}

impl Ask {
    /// Names of the flags that were given.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let flags = [
            ("--kernel", !self.kernels.is_empty()),
            ("--machine", self.machine.is_some()),
            ("--set", !self.set.is_empty()),
            ("--seed", self.seed.is_some()),
            ("--repeat", self.repeat.is_some()),
            ("--on", self.on != Backend::Model),
            ("--image", !self.images.is_empty()),
            ("--timeout", self.timeout.is_some()),
            ("--interval", self.interval.is_some()),
            ("--accel", self.accel.is_some()),
            ("--machine-wide", self.machine_wide),
        ];
        let given = flags.into_iter().filter(|(_, given)| *given);
        given.map(|(flag, _)| flag).collect()
    }
}

impl Ask {
    /// Refuses flags that have no meaning for this backend.
    pub(crate) fn check(&self) -> miette::Result<()> {
        let (guest, host) = (Backend::Guest, Backend::Host);
        let flags: [(&str, bool, &[Backend]); 5] = [
            ("--image", !self.images.is_empty(), &[guest]),
            ("--timeout", self.timeout.is_some(), &[guest, host]),
            ("--interval", self.interval.is_some(), &[guest]),
            ("--accel", self.accel.is_some(), &[guest]),
            ("--machine-wide", self.machine_wide, &[host]),
        ];
        let mut wrong = flags
            .into_iter()
            .filter(|(_, given, of)| *given && !of.contains(&self.on));
        let Some((flag, _, of)) = wrong.next() else {
            return Ok(());
        };
        let of = of.iter().map(|on| format!("--on {}", on.name()));
        let of = of.collect::<Vec<_>>().join(" or ");
        let on = match self.on {
            Backend::Model => "the model".to_owned(),
            on => format!("--on {}", on.name()),
        };
        Err(miette!(
            help = format!("it goes with {of}, which run on a real kernel"),
            "{flag} has no meaning for {on}"
        ))
    }

    /// Refuses the kernel of this system where several kernels are needed, or a machine that starts anew.
    pub(crate) fn check_not_host(&self, verb: &str, why: &str) -> miette::Result<()> {
        match self.on {
            Backend::Host => Err(miette!(
                help = "write --on guest",
                "{verb} --on host: {why}"
            )),
            Backend::Model | Backend::Guest => Ok(()),
        }
    }
}

/// Parses `NAME=VALUE`.
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE, for example touches=100000".to_owned()),
    }
}

/// Parses a length of time, `90s`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let wrong = || "expected a time such as 500ms, 90s, 5m or 1h".to_owned();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(wrong)?;
    let ms = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(unit.1));
    ms.filter(|ms| *ms > 0)
        .map(Duration::from_millis)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_verb_has_an_example() {
        for verb in Cli::command().get_subcommands() {
            let help = verb.get_after_help().map(ToString::to_string);
            let example = format!("\n  lowmark {}", verb.get_name());
            assert!(help.is_some_and(|help| help.contains(&example)), "{verb}");
        }
    }

    /// Paragraphs are wrapped where the terminal ends, and a break of their own would come on top of that.
    #[test]
    fn help_has_no_breaks_within_paragraphs() {
        let root = Cli::command();
        for command in root.get_subcommands().chain([&root]) {
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            let lines: Vec<&str> = help.lines().collect();
            for pair in lines.windows(2) {
                let whole = pair.iter().any(|line| line.is_empty()) || pair[1].starts_with("  ");
                assert!(whole, "{}: {pair:?}", command.get_name());
            }
        }
    }

    #[test]
    fn settings_are_split_at_the_first_equals_sign() {
        assert_eq!(setting("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(setting("a").is_err());
        assert!(setting("=b").is_err());
    }

    #[test]
    fn times_have_units() {
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(time("1h"), Ok(Duration::from_secs(3600)));
        for wrong in [
            "",
            "5",
            "s",
            "-5s",
            "1.5s",
            "0s",
            "5 s",
            "99999999999999999999s",
            "9999999999999999999h",
        ] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}

//! `lowmark whatif`: what another setting, more RAM or another kernel would have done.
//!
//! 1. The recording says which machine and kernel it was, with which settings ([`known`]).
//! 2. `lowmark-whatif` reconstructs the load by running what comes into question on the model, and asks the loads that fit.
//! 3. What it says is printed; with --out the loads are written as workloads of their own.

mod knobs;
mod known;

use crate::cli::{Format, Paging, Printing, Running, setting};
use crate::engine;
use crate::library::refuse_empty;
use crate::output::{self, remark};
use crate::page::PageFile;
use crate::plan::Run;
use crate::traces;
use knobs::knobs;
use known::{Asked, Known};
use lowmark_real::host::inside;
use lowmark_record::Recording;
use lowmark_report::document::{Document, Section};
use lowmark_spec::{BuiltIn, Overrides, Scenario, Source, parse, write_machine};
use lowmark_whatif::{Candidate, Error, Knobs, Reconstructed, Refusal, Runner, Setting, ask};
use miette::{IntoDiagnostic, WrapErr, miette};
use std::path::{Path, PathBuf};

/// Exit status where the question is refused.
const REFUSED: u8 = 1;
/// The file of the machine that loads are written for.
const MACHINE: &str = "recorded.toml";

/// What another setting, more RAM or another kernel would have done to a load that was recorded
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  lowmark whatif runs/a\n  lowmark whatif runs/a --set watermark_scale_factor=200\n  \
    lowmark whatif runs/a --set ram=640M\n  \
    lowmark whatif runs/a --kernel v6.18\n  \
    lowmark whatif runs/a --set page_cluster=0 --out loads\n  \
    lowmark whatif runs/in-a-cgroup --set memory.max=300M --machine host.toml\n\n\
    The load is reconstructed from counters and run on the model, as it was and as asked. One that used private or shared \
    memory alone and was recorded from its beginning can be reconstructed; any other is refused, with the reason. Without --set and \
    --kernel the settings are asked about that users turn most, each by itself, and more memory.\n\n\
    Exit status: 0 answered; 1 refused; 2 an error."
)]
pub(crate) struct Args {
    /// Recording, as `lowmark run --out` and `lowmark record` write it
    #[arg(value_name = "RECORDING")]
    capture: String,
    /// Another value of a sysctl, other RAM (ram=2G), or for a load in a memory cgroup other limits (memory.max=300M,
    /// memory.swap.max=0); once for each name
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// What the recorded machine had otherwise than its file says, where the recording does not tell (ram=225M); once for each
    /// name
    #[arg(long = "was", value_name = "NAME=VALUE", value_parser = setting)]
    was: Vec<(String, String)>,
    /// Another kernel: VERSION[+MECHANISM[=VARIANT]]...[,SYSCTL=VALUE]...
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<String>,
    /// Machine that was recorded, for its disks and costs: a name or a path to a .toml file [default: as the recording says]
    #[arg(long, value_name = "NAME|PATH")]
    machine: Option<String>,
    /// Runs at the same time [default: one for each CPU]; makes no difference to the answer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Writes the loads that fit as workloads, with the machine, into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// No progress and no remarks on stderr, only errors
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    printing: Printing,
    #[command(flatten)]
    paging: Paging,
}

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    let page = PageFile::create(&args.paging)?;
    let recording = recording(&args.capture)?;
    let asked = Asked {
        was: &args.was,
        set: &args.set,
        kernel: args.kernel.as_deref(),
        machine: args.machine.as_deref(),
    };
    let known = Known::of(&recording, &asked)?;
    if args.set.is_empty() && args.kernel.is_none() {
        return ask_knobs(args, &recording, &known, page);
    }
    let question = asked.question();
    if let Some(refusal) = &known.refusal {
        return refused(args, &question, refusal);
    }
    let bench = Bench {
        args,
        known: &known,
    };
    let answer = match ask(&recording, known.question, &bench) {
        Ok(answer) => answer,
        Err(Error::Refused(refusal)) => return refused(args, &question, &refusal),
        Err(Error::Run(report)) => return Err(report),
    };
    if let Some(out) = &args.out {
        write_loads(out, &answer.load, &known, args.quiet)?;
    }
    let mut section = Section::titled(heading(&recording));
    section.blank();
    section.append(answer.section(&question));
    let document = Document {
        name: format!("lowmark whatif {}", args.capture),
        sections: vec![section],
    };
    match args.printing.format {
        Format::Json => output::print_json(&answer.written(&question))?,
        Format::Table => output::print_document(&document)?,
    }
    page.write(&document, false)?;
    Ok(0)
}

/// What each of the settings would have done that users turn, side by side.
fn ask_knobs(
    args: &Args,
    recording: &Recording,
    known: &Known,
    page: PageFile,
) -> miette::Result<u8> {
    const QUESTION: &str = "any setting";
    if let Some(refusal) = &known.refusal {
        return refused(args, QUESTION, refusal);
    }
    let bench = Bench { args, known };
    let load = match Reconstructed::of(recording, &bench) {
        Ok(load) => load,
        Err(Error::Refused(refusal)) => return refused(args, QUESTION, &refusal),
        Err(Error::Run(report)) => return Err(report),
    };
    let mut asked = Vec::new();
    for knob in knobs(recording, &known.was) {
        let set = [(knob.name.to_owned(), knob.value)];
        let one = Asked {
            was: &args.was,
            set: &set,
            kernel: None,
            machine: args.machine.as_deref(),
        };
        let known = Known::of(recording, &one)?;
        let rows = match load.ask(
            known.question,
            &Bench {
                args,
                known: &known,
            },
        ) {
            Ok(rows) => Ok(rows),
            Err(Error::Refused(refusal)) => Err(*refusal),
            Err(Error::Run(report)) => return Err(report),
        };
        asked.push(lowmark_whatif::Asked {
            question: one.question(),
            is_memory: knob.is_memory,
            rows,
        });
    }
    let knobs = Knobs { load, asked };
    if let Some(out) = &args.out {
        write_loads(out, &knobs.load, known, args.quiet)?;
    }
    let mut section = Section::titled(heading(recording));
    section.blank();
    section.append(knobs.section());
    let document = Document {
        name: format!("lowmark whatif {}", args.capture),
        sections: vec![section],
    };
    match args.printing.format {
        Format::Json => output::print_json(&knobs.written())?,
        Format::Table => output::print_document(&document)?,
    }
    page.write(&document, false)?;
    Ok(if knobs.is_answered() { 0 } else { REFUSED })
}

/// The recording that was named.
fn recording(capture: &str) -> miette::Result<Recording> {
    refuse_empty(capture)?;
    let targets = traces::targets(&[capture.to_owned()])?;
    let [target] = targets.as_slice() else {
        return Err(miette!(
            help = "name one of them",
            "{capture}: {} recordings; lowmark whatif answers for one",
            targets.len()
        ));
    };
    if !Path::new(target).is_dir() {
        return Err(miette!(
            help = "`lowmark record` and `lowmark run --out` write recordings: counters, settings and zones are needed",
            "{target}: expected the directory of a recording, found a file"
        ));
    }
    Recording::read_without_events(Path::new(target)).into_diagnostic()
}

fn heading(recording: &Recording) -> String {
    let run = &recording.run;
    let release = recording.system.as_ref().map(|system| &system.release);
    let kernel = release.map_or_else(|| run.kernel.clone(), |release| format!("Linux {release}"));
    format!("{} on {}, {kernel}", run.workload, run.machine)
}

fn refused(args: &Args, question: &str, refusal: &Refusal) -> miette::Result<u8> {
    #[derive(serde::Serialize)]
    struct Written<'a> {
        version: u32,
        question: &'a str,
        refused: &'a str,
        instead: &'a str,
    }
    match args.printing.format {
        Format::Json => output::print_json(&Written {
            version: 1,
            question,
            refused: &refusal.because,
            instead: &refusal.instead,
        })?,
        Format::Table => {
            let mut section = Section::new();
            section.paragraph(format!("Refused: {}.", refusal.because), 0);
            section.paragraph(format!("What would help: {}.", refusal.instead), 0);
            output::print_document(&Document {
                name: format!("lowmark whatif {}", args.capture),
                sections: vec![section],
            })?;
        }
    }
    Ok(REFUSED)
}

/// Writes the loads that fit, and the machine that they are for.
fn write_loads(out: &Path, load: &Reconstructed, known: &Known, quiet: bool) -> miette::Result<()> {
    let cannot = || format!("{}: cannot write", out.display());
    let write = |name: &str, text: String| std::fs::write(out.join(name), text);
    let loads = &load.fit.kept;
    let machine = write_machine(
        &known.was.machine,
        "the recording, and the machine file that it names",
    );
    std::fs::create_dir_all(out)
        .and_then(|()| write(MACHINE, machine))
        .into_diagnostic()
        .wrap_err_with(cannot)?;
    for (at, fitted) in loads.iter().enumerate() {
        let text = fitted.candidate.text(MACHINE, &known.was.kernel_text());
        write(&format!("load-{}.toml", at + 1), text)
            .into_diagnostic()
            .wrap_err_with(cannot)?;
    }
    let said = format!(
        "{} loads and their machine written to {}",
        loads.len(),
        out.display()
    );
    remark(quiet, &said);
    Ok(())
}

/// Runs loads on the model.
struct Bench<'a> {
    args: &'a Args,
    known: &'a Known,
}

impl Runner for Bench<'_> {
    type Error = miette::Report;

    fn run(&self, scenarios: Vec<Scenario>) -> miette::Result<Vec<Recording>> {
        let runs: Vec<Run> = scenarios
            .into_iter()
            .map(|scenario| Run {
                name: "whatif".to_owned(),
                scenario,
                repeat: 0,
                real: None,
            })
            .collect();
        let running = Running {
            jobs: self.args.jobs,
            ..engine::quietly(self.args.quiet)
        };
        engine::execute(&runs, &running)
    }

    fn scenario(&self, candidate: &Candidate, setting: Setting) -> miette::Result<Scenario> {
        let side = match setting {
            Setting::Was => &self.known.was,
            Setting::WouldBe => &self.known.would_be,
        };
        let source = Source {
            name: "the reconstructed load".to_owned(),
            text: candidate.text(known::ANY_MACHINE, &side.kernel.version),
        };
        let mut scenarios = parse(&source, &BuiltIn, &Overrides::default())?;
        let mut scenario = scenarios
            .pop()
            .ok_or_else(|| miette!("the reconstructed load: expected a scenario, found none"))?;
        scenario.machine = side.machine.clone();
        scenario.kernel = side.kernel.clone();
        if let Some(around) = side.around {
            scenario = inside(&scenario, around);
        }
        lowmark_model::check(&scenario)
            .map_err(|refusal| miette!("{}: {refusal}", side.kernel.text))?;
        Ok(scenario)
    }
}

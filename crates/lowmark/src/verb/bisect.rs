//! `lowmark bisect`: which changes make the difference between two kernels.

use crate::bisecting::{self, Found};
use crate::cli::{Ask, Backend, Format, Paging, Printing, Running};
use crate::output;
use crate::page::PageFile;
use lowmark_record::Remark;
use lowmark_report::document::{self, Section, separated};
use miette::miette;
use serde::Serialize;

/// Version of the JSON form.
const JSON_VERSION: u32 = 1;

/// Says which changes make the difference between two kernels, and how much each
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  lowmark bisect swap-small --from v3.6 --to v3.14 --set order=random\n  \
    lowmark bisect swap-small --from v6.1 --to v6.18 --metric pswpout --metric Elapsed\n  \
    lowmark bisect swap-small --from v6.1,swappiness=10 --to v6.1 --set order=random\n  \
    lowmark bisect swap-small --from v3.6 --to v3.14 --set order=random --html bisect.html\n\n\
    The changes are those of `lowmark list kernels`, variants and settings that one of the kernels has and \
    the other has not. Every kernel is run on several boots of the machine; what of a difference is chance is \
    decided as by `lowmark compare`."
)]
pub(crate) struct Args {
    /// Workload: a built-in one (see `lowmark list workloads`) or a path to a .toml file
    workload: String,
    /// The first kernel: VERSION[+MECHANISM[=VARIANT]]...[,SYSCTL=VALUE]...
    #[arg(long, value_name = "KERNEL")]
    from: String,
    /// The second kernel
    #[arg(long, value_name = "KERNEL")]
    to: String,
    /// Figure to take apart, a row of `lowmark compare` or a counter; given again, one more [default: all that
    /// differ and are good or bad]
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<String>,
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    printing: Printing,
    #[command(flatten)]
    paging: Paging,
}

/// The JSON form.
#[derive(Serialize)]
struct Document<'f> {
    version: u32,
    bisections: Vec<Bisection<'f>>,
}

/// One combination of parameters.
#[derive(Serialize)]
struct Bisection<'f> {
    title: &'f str,
    #[serde(flatten)]
    verdict: serde_json::Value,
    /// Changes that do nothing in the model of either kernel.
    left_out: &'f [&'static str],
    /// What the backend left out, see `recording.json`.
    #[serde(skip_serializing_if = "<[Remark]>::is_empty")]
    not_modelled: &'f [Remark],
}

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    if !args.ask.kernels.is_empty() {
        return Err(miette!(
            help = "--from and --to name the kernels",
            "--kernel has no meaning for bisect"
        ));
    }
    if args.ask.on != Backend::Model {
        return Err(miette!(
            help = "compare real kernels with `lowmark compare --on guest`",
            "bisect runs on the model"
        ));
    }
    let ask = Ask {
        kernels: vec![args.from.clone(), args.to.clone()],
        ..args.ask.clone()
    };
    let page = PageFile::create(&args.paging)?;
    let found = bisecting::bisect(&args.workload, &ask, &args.metrics, &args.running)?;
    let document = document::Document {
        name: format!(
            "lowmark bisect {} --from {} --to {}",
            args.workload, args.from, args.to
        ),
        sections: separated(found.iter().map(section).collect()),
    };
    match args.printing.format {
        Format::Json => output::print_json(&Document {
            version: JSON_VERSION,
            bisections: found.iter().map(self::document).collect(),
        })?,
        Format::Table => output::print_document(&document)?,
    }
    page.write(&document, args.running.quiet)?;
    Ok(0)
}

fn document(found: &Found) -> Bisection<'_> {
    Bisection {
        title: &found.title,
        verdict: found.verdict.json(),
        left_out: &found.left_out,
        not_modelled: &found.not_modelled,
    }
}

fn section(found: &Found) -> Section<'static> {
    let mut section = Section::titled(&found.title);
    for remark in &found.not_modelled {
        section.paragraph(format!("note: {remark}"), 0);
    }
    section.blank();
    section.append(found.verdict.section());
    if !found.left_out.is_empty() {
        let names = found.left_out.join(", ");
        section.paragraph(
            format!(
                "Changes of what the model leaves out of both kernels, not counted (`lowmark list coverage`): {names}."
            ),
            0,
        );
    }
    section
}

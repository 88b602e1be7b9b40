//! `lowmark bisect`: which changes make the difference between two kernels, columns of evaluations, or settings.

use crate::between::{End, Pair};
use crate::bisecting::{self, Found};
use crate::cli::{Ask, Format, Paging, Printing, Running, setting};
use crate::columns::{self, Cells, Columns};
use crate::library;
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
    lowmark bisect swap-small --from v6.1 --to v6.18 --from-set ram=512M --to-set ram=448M\n  \
    lowmark bisect --from swap-readahead:Vanilla --to swap-readahead:HughPC4 --table hdd --row 'Rand Anon'\n  \
    lowmark bisect swap-small --on guest --from 6.1 --to 6.18,swappiness=10 --set order=random\n  \
    lowmark bisect swap-small --from v3.6 --to v3.14 --set order=random --html bisect.html\n\n\
    The changes are those of `lowmark list kernels`, variants and settings that one of the ends has and the \
    other has not, and the machine. An image in a guest is one change. Every kernel is run on several boots of the machine; what of a difference is chance is \
    decided as by `lowmark compare`."
)]
pub(crate) struct Args {
    /// Workload: a built-in one (see `lowmark list workloads`) or a path to a .toml file
    workload: Option<String>,
    /// The first kernel: VERSION[+MECHANISM[=VARIANT]]...[,SYSCTL=VALUE]...; with --on guest an image, a version that was
    /// fetched or a path; without a workload a column of a published evaluation
    #[arg(long, value_name = "KERNEL|IMAGE|EVALUATION:COLUMN")]
    from: String,
    /// The second one
    #[arg(long, value_name = "KERNEL|IMAGE|EVALUATION:COLUMN")]
    to: String,
    /// Sets something as --set does, for the first one alone
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    from_set: Vec<(String, String)>,
    /// Sets something for the second one alone
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    to_set: Vec<(String, String)>,
    #[command(flatten)]
    cells: Cells,
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
    let page = PageFile::create(&args.paging)?;
    let columns = columns(args)?;
    let found = bisecting::bisect(columns, &args.ask, &args.metrics, &args.running)?;
    let document = document::Document {
        name: format!(
            "lowmark bisect{} --from {} --to {}",
            args.workload
                .as_ref()
                .map_or(String::new(), |workload| format!(" {workload}")),
            args.from,
            args.to
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

/// What is compared: kernels on a workload, or columns of evaluations.
fn columns(args: &Args) -> miette::Result<Columns> {
    let mut columns = match &args.workload {
        Some(workload) => {
            if let Some(flag) = args.cells.given().first() {
                return Err(miette!(
                    help = "omit the workload, and write EVALUATION:COLUMN as --from and --to",
                    "{flag} has no meaning for a workload"
                ));
            }
            let end = |kernel: &String| End {
                name: kernel.clone(),
                kernel: kernel.clone(),
                machine: None,
                set: Vec::new(),
            };
            Columns {
                pair: Pair {
                    found: library::find(workload)?,
                    ends: [end(&args.from), end(&args.to)],
                },
                cells: Vec::new(),
            }
        }
        None => columns::find(&args.from, &args.to, &args.cells)?.ok_or_else(|| {
            miette!(
                help = "name a workload, or write EVALUATION:COLUMN as --from and --to; `lowmark reproduce` lists \
                        evaluations",
                "of which workload?"
            )
        })?,
    };
    let own = [&args.from_set, &args.to_set];
    for (end, own) in columns.pair.ends.iter_mut().zip(own) {
        // The last one counts, as where an evaluation's own settings overlap.
        end.set.retain(|(known, _)| {
            let given = |(name, _): &(String, String)| name == known;
            !own.iter().any(given) && !args.ask.set.iter().any(given)
        });
        end.set.extend(own.iter().cloned());
        for (name, value) in own {
            end.name += &format!(" {name}={value}");
        }
    }
    Ok(columns)
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
                "Changes that decide nothing in either kernel, not counted; they are of what the model leaves out (`lowmark list \
                 coverage`) or of generations of pages that are off (`lru_gen.enabled`): {names}."
            ),
            0,
        );
    }
    section
}

//! `lowmark list`: what there is.

mod coverage;
pub(super) mod evaluations;
mod kernels;
mod machines;
mod mechanisms;
mod sysctls;
mod workloads;

use crate::cli::{Format, Printing};
use crate::output::{self, Page};
use clap::ValueEnum;
use miette::miette;
use serde_json::{Map, Value, json};

/// Version of the JSON form.
const JSON_VERSION: u32 = 1;

/// Lists workloads, machines, kernels, mechanisms, coverage, sysctls and evaluations
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  lowmark list\n  lowmark list mechanisms --format json\n  \
    lowmark list mechanisms balance_pgdat\n  lowmark list kernels 6.1..6.18\n  lowmark list coverage v5.10"
)]
pub(crate) struct Args {
    /// What to list
    #[arg(value_enum, default_value_t = What::All)]
    what: What,
    /// One mechanism; a version or a range of versions, such as 6.1..6.18; the version to list the coverage of
    #[arg(value_name = "NAME|VERSION|RANGE")]
    which: Option<String>,
    #[command(flatten)]
    printing: Printing,
}

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Workloads that are built in
    Workloads,
    /// Machines that are built in
    Machines,
    /// Kernel versions of the model and the changes that each brought
    Kernels,
    /// Mechanisms that can be set one by one, and their variants
    Mechanisms,
    /// What of each kernel the model leaves out
    Coverage,
    /// Settings under /proc/sys/vm that the model obeys
    Sysctls,
    /// Published evaluations, and whether there is a recipe to run them
    Evaluations,
    /// All of these
    All,
}

/// Something that can be listed, for people and for programs.
struct Topic {
    what: What,
    name: &'static str,
    text: fn(&Page, Which<'_>) -> miette::Result<String>,
    json: fn(Which<'_>) -> miette::Result<Value>,
    /// Whether it can be asked for one entry.
    has_entries: bool,
}

/// The entry that was asked for; none for all.
type Which<'a> = Option<&'a str>;

const TOPICS: [Topic; 7] = [
    Topic {
        what: What::Workloads,
        name: "workloads",
        text: |page, _| workloads::text(page),
        json: |_| workloads::json(),
        has_entries: false,
    },
    Topic {
        what: What::Machines,
        name: "machines",
        text: |page, _| machines::text(page),
        json: |_| machines::json(),
        has_entries: false,
    },
    Topic {
        what: What::Kernels,
        name: "kernels",
        text: kernels::text,
        json: kernels::json,
        has_entries: true,
    },
    Topic {
        what: What::Mechanisms,
        name: "mechanisms",
        text: mechanisms::text,
        json: mechanisms::json,
        has_entries: true,
    },
    Topic {
        what: What::Coverage,
        name: "coverage",
        text: coverage::text,
        json: coverage::json,
        has_entries: true,
    },
    Topic {
        what: What::Sysctls,
        name: "sysctls",
        text: |page, _| sysctls::text(page),
        json: |_| sysctls::json(),
        has_entries: false,
    },
    Topic {
        what: What::Evaluations,
        name: "evaluations",
        text: |page, _| evaluations::text(page),
        json: |_| evaluations::json(),
        has_entries: false,
    },
];

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    let asked = |topic: &&Topic| args.what == What::All || args.what == topic.what;
    let topics = TOPICS.iter().filter(asked);
    let which = args.which.as_deref();
    if let (Some(which), Some(topic)) = (which, topics.clone().find(|topic| !topic.has_entries)) {
        return Err(miette!(
            help = "mechanisms, kernels and coverage can be asked for one entry",
            "{which}: `lowmark list {}` lists all of them",
            if args.what == What::All {
                "all"
            } else {
                topic.name
            }
        ));
    }
    match args.printing.format {
        Format::Json => {
            let mut document = Map::new();
            document.insert("version".to_owned(), json!(JSON_VERSION));
            for topic in topics {
                document.insert(topic.name.to_owned(), (topic.json)(which)?);
            }
            output::print_json(&document)?;
        }
        Format::Table => {
            let page = Page::stdout();
            let section = |topic: &Topic| {
                let title = if args.what == What::All {
                    format!("{}\n", page.title(&topic.name.to_uppercase()))
                } else {
                    String::new()
                };
                Ok(title + &(topic.text)(&page, which)?)
            };
            let sections = topics
                .map(section)
                .collect::<miette::Result<Vec<String>>>()?;
            output::print(&sections.join("\n"))?;
        }
    }
    Ok(0)
}

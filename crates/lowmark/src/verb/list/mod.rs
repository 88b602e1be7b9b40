//! `lowmark list`: what there is.

pub(super) mod evaluations;
mod kernels;
mod machines;
mod mechanisms;
mod workloads;

use crate::cli::{Format, Printing};
use crate::output::{self, Page};
use clap::ValueEnum;
use serde_json::{Map, Value, json};

/// Version of the JSON form.
const JSON_VERSION: u32 = 1;

/// Lists workloads, machines, kernels, mechanisms and evaluations
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  lowmark list\n  lowmark list mechanisms --format json")]
pub(crate) struct Args {
    /// What to list
    #[arg(value_enum, default_value_t = What::All)]
    what: What,
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
    /// Published evaluations, and whether there is a recipe to run them
    Evaluations,
    /// All of these
    All,
}

/// Something that can be listed, for people and for programs.
struct Topic {
    what: What,
    name: &'static str,
    text: fn(&Page) -> miette::Result<String>,
    json: fn() -> miette::Result<Value>,
}

const TOPICS: [Topic; 5] = [
    Topic {
        what: What::Workloads,
        name: "workloads",
        text: workloads::text,
        json: workloads::json,
    },
    Topic {
        what: What::Machines,
        name: "machines",
        text: machines::text,
        json: machines::json,
    },
    Topic {
        what: What::Kernels,
        name: "kernels",
        text: kernels::text,
        json: kernels::json,
    },
    Topic {
        what: What::Mechanisms,
        name: "mechanisms",
        text: mechanisms::text,
        json: mechanisms::json,
    },
    Topic {
        what: What::Evaluations,
        name: "evaluations",
        text: evaluations::text,
        json: evaluations::json,
    },
];

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    let asked = |topic: &&Topic| args.what == What::All || args.what == topic.what;
    let topics = TOPICS.iter().filter(asked);
    match args.printing.format {
        Format::Json => {
            let mut document = Map::new();
            document.insert("version".to_owned(), json!(JSON_VERSION));
            for topic in topics {
                document.insert(topic.name.to_owned(), (topic.json)()?);
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
                Ok(title + &(topic.text)(&page)?)
            };
            let sections = topics
                .map(section)
                .collect::<miette::Result<Vec<String>>>()?;
            output::print(&sections.join("\n"))?;
        }
    }
    Ok(0)
}

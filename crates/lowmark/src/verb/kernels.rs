//! `lowmark kernels`: images for guests.

use crate::cli::{Format, Printing};
use crate::error::Guest;
use crate::output::{self, Page};
use lowmark_real::guest::{GuestError, KernelImage, kernels};
use lowmark_report::table::{Align, TextTable};
use serde::Serialize;

/// Version of the JSON form.
const JSON_VERSION: u32 = 1;

/// Fetches and lists kernel images for guests
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  lowmark kernels fetch 6.1 6.12 6.18\n  lowmark kernels list\n\n\
    Kernels are Debian's, or Ubuntu's where Debian has none of a version, got with apt-get and unpacked into \
    ${XDG_CACHE_HOME:-~/.cache}/lowmark; nothing is installed, no root is needed. LOWMARK_DEBIAN_MIRROR and \
    LOWMARK_UBUNTU_MIRROR name other mirrors. Any other image can be given to --image by its path."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

/// What to do with them.
#[derive(Debug, clap::Subcommand)]
enum What {
    /// Gets kernels that are not there yet
    Fetch {
        /// Versions, such as 6.18, or 6.18.15
        #[arg(required = true, value_name = "VERSION")]
        versions: Vec<String>,
        #[command(flatten)]
        printing: Printing,
    },
    /// Lists the kernels that were fetched
    List {
        #[command(flatten)]
        printing: Printing,
    },
}

/// The JSON form.
#[derive(Serialize)]
struct Document {
    version: u32,
    kernels: Vec<Entry>,
}

/// A kernel.
#[derive(Serialize)]
struct Entry {
    version: String,
    release: String,
    image: String,
}

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    let (found, printing): (Result<Vec<Entry>, GuestError>, &Printing) = match &args.what {
        What::Fetch { versions, printing } => {
            let fetched = versions
                .iter()
                .map(|version| entry(version, kernels::fetch(version)?));
            (fetched.collect(), printing)
        }
        What::List { printing } => {
            let versions = kernels::fetched().into_iter();
            let found = versions.map(|version| entry(&version, KernelImage::find(&version)?));
            (found.collect(), printing)
        }
    };
    print(found.map_err(Guest)?, printing.format)?;
    Ok(0)
}

fn entry(version: &str, image: KernelImage) -> Result<Entry, GuestError> {
    Ok(Entry {
        version: version.to_owned(),
        release: image.release,
        image: image.path.display().to_string(),
    })
}

fn print(kernels: Vec<Entry>, format: Format) -> miette::Result<()> {
    if format == Format::Json {
        return output::print_json(&Document {
            version: JSON_VERSION,
            kernels,
        });
    }
    if kernels.is_empty() {
        return output::print("none; `lowmark kernels fetch 6.18` gets one\n");
    }
    let page = Page::stdout();
    let mut table = TextTable::new();
    for heading in ["version", "release", "image"] {
        table = table.column(heading, Align::Left);
    }
    for kernel in &kernels {
        table.row([&kernel.version, &kernel.release, &kernel.image].map(String::as_str));
    }
    output::print(&table.render(page.style.as_ref(), page.width))
}

//! The memory that a load touched, as counters say it.
//!
//! Each page that a task touches for the first time is a minor fault and takes a page; a page that comes back from swap takes one
//! as well, and is a major fault, or a minor one if it was read ahead. So the pages that were touched are those allocated that did
//! not come from a disk, and the minor faults that did not find a page that was read ahead; the smaller of the two, as either counts
//! other things besides.

use crate::candidate::Kind;
use crate::counters::{Figures, of_zones};
use crate::refusal::Refusal;
use lowmark_record::{Gauges, Recording};

/// A share of which others take part in reclaim that is too much to leave out: one in this many.
const SHARE: u64 = 10;
/// The least amount of memory that says anything, pages.
const PAGES_MIN: u64 = 1024;
/// The most that a machine may have, pages: 16 TiB.
const PAGES_MAX: u64 = 1 << 32;
/// Most swap-ins for each page of a load: the fit runs a load a hundred times, which takes too long with more.
const TIMES_MAX: u64 = 100;
/// Fewer pages than these mean that nothing was reclaimed.
const SCANNED_MIN: u64 = 400;

/// The memory that a load touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// Pages of memory of its own that it touched.
    pub pages: u64,
    /// Kinds of memory that come into question.
    pub kinds: Vec<Kind>,
}

impl Demand {
    /// The memory that the load of a recording touched.
    ///
    /// # Errors
    ///
    /// Counters do not tell apart what the load did: it used files or huge pages, or memory was not short.
    pub fn of(recording: &Recording) -> Result<Demand, Refusal> {
        let counter = |name: &str| of_zones(&recording.counters, name).unwrap_or(0);
        let swapped_in = counter("pswpin");
        // pgpgin counts KiB that were read from disks, swap among them.
        let read = (counter("pgpgin") / 4).saturating_sub(swapped_in);
        let allocated = counter("pgalloc").saturating_sub(swapped_in.saturating_add(read));
        // Of a load in a memory cgroup, those of the group are the load's alone.
        let of_load = |name: &str| {
            let of_group = recording
                .counters
                .get(&format!("cgroup/memory.stat.{name}"));
            of_group.copied().unwrap_or_else(|| counter(name))
        };
        let minor = of_load("pgfault").saturating_sub(of_load("pgmajfault"));
        let pages = minor.saturating_sub(counter("swap_ra_hit")).min(allocated);
        refuse_huge_pages(counter("thp_fault_alloc"))?;
        let figures = Figures::of(recording);
        let of_files = counter("pgsteal_file").max(read);
        refuse_files(of_files, pages.max(figures.named("pgsteal")))?;
        refuse_writers(counter("nr_dirtied"), pages)?;
        refuse_idle(figures.named("pgscan"))?;
        if pages < PAGES_MIN {
            return Err(Refusal::new(
                format!(
                    "the load touched {pages} pages of memory of its own for the first time, fewer than {PAGES_MIN}"
                ),
                "record from before the load begins until it ends",
            ));
        }
        if pages > PAGES_MAX {
            return Err(Refusal::new(
                format!(
                    "the counters say that {pages} pages were touched, more than any machine has"
                ),
                "check the recording: a counter may have gone back",
            ));
        }
        if swapped_in / TIMES_MAX > pages {
            return Err(Refusal::new(
                format!(
                    "{swapped_in} pages were swapped in, each of {pages} pages more than {TIMES_MAX} times"
                ),
                "record for a shorter time",
            ));
        }
        Ok(Demand {
            pages,
            kinds: kinds(&recording.gauges),
        })
    }
}

fn refuse_huge_pages(faults: u64) -> Result<(), Refusal> {
    if faults == 0 {
        return Ok(());
    }
    Err(Refusal::new(
        format!(
            "{faults} faults got a huge page, and loads with huge pages are not reconstructed yet"
        ),
        "record with transparent_hugepage/enabled at never",
    ))
}

fn refuse_files(files: u64, of: u64) -> Result<(), Refusal> {
    if files <= of / SHARE {
        return Ok(());
    }
    Err(Refusal::new(
        format!(
            "{files} pages of files were read or reclaimed beside {of} pages, and loads of files are not reconstructed yet"
        ),
        "`lowmark why` says what files took part in",
    ))
}

fn refuse_writers(dirtied: u64, pages: u64) -> Result<(), Refusal> {
    if dirtied <= pages / SHARE {
        return Ok(());
    }
    Err(Refusal::new(
        format!(
            "{dirtied} pages of files were dirtied beside {pages} pages of memory, and writers are not reconstructed yet"
        ),
        "`lowmark why` says what writers took part in",
    ))
}

fn refuse_idle(scanned: u64) -> Result<(), Refusal> {
    if scanned >= SCANNED_MIN {
        return Ok(());
    }
    Err(Refusal::new(
        format!(
            "{scanned} pages were scanned while it was recorded: memory was not short, and counters do not show what is touched again"
        ),
        "record while memory is short",
    ))
}

/// Private or shared memory, by what grew over the recording; both come into question where nobody looked.
fn kinds(gauges: &Gauges) -> Vec<Kind> {
    let grown = |name: &str| {
        let at = gauges.names.iter().position(|known| known == name)?;
        let values = || {
            gauges
                .samples
                .iter()
                .filter_map(|(_, values)| values.get(at))
        };
        Some(values().max()? - values().min()?)
    };
    match (grown("nr_anon_pages"), grown("nr_shmem")) {
        (Some(private), Some(shared)) if private > shared => vec![Kind::Private],
        (Some(private), Some(shared)) if shared > private => vec![Kind::Shared],
        _ => vec![Kind::Private, Kind::Shared],
    }
}

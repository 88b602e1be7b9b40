//! The counters: files that are looked at ten times a second, and the busiest tasks.

use super::Roots;
use super::pace::{Pace, thread_cpu_ns};
use super::parse;
use super::proc_file::ProcFile;
use super::row::Row;
use super::tasks::Tasks;
use lowmark_record::CounterLog;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Time between two looks, ns.
pub const TICK_NS: u64 = 100_000_000;
/// Looks at tasks are four a second: at the ticks 0, 2, 5 and 7 of ten.
const TASK_TICKS: [u64; 4] = [0, 2, 5, 7];

type Parse = fn(&[u8], &mut Row);

/// Files that are looked at everywhere, below `/proc`, with the shares of CPU time that they may cost.
const FILES: [(&str, u64, Parse); 7] = [
    ("vmstat", 4, parse::flat),
    ("meminfo", 2, parse::meminfo),
    ("zoneinfo", 3, parse::zoneinfo),
    ("diskstats", 2, parse::diskstats),
    ("pressure/memory", 1, parse::pressure),
    ("pressure/io", 1, parse::pressure),
    ("pressure/cpu", 1, parse::pressure),
];
/// Shares of all tasks together.
const TASK_SHARES: u64 = 6;
/// Shares of each cgroup that somebody asked for.
const CGROUP_SHARES: u64 = 4;

/// Files of a cgroup, with what stands before their names in its log; the last six are of version 1, which has the same
/// `memory.stat` with other names in it.
const CGROUP_FILES: [(&str, &str, Parse); 16] = [
    ("memory.current", "memory.current", parse::single),
    ("memory.high", "memory.high", parse::single),
    ("memory.max", "memory.max", parse::single),
    ("memory.swap.current", "memory.swap.current", parse::single),
    ("memory.swap.max", "memory.swap.max", parse::single),
    ("memory.stat", "memory.stat/", parse::flat),
    ("memory.events", "memory.events/", parse::flat),
    ("memory.swap.events", "memory.swap.events/", parse::flat),
    ("memory.pressure", "memory.pressure/", parse::pressure),
    ("io.pressure", "io.pressure/", parse::pressure),
    (
        "memory.usage_in_bytes",
        "memory.usage_in_bytes",
        parse::single,
    ),
    (
        "memory.limit_in_bytes",
        "memory.limit_in_bytes",
        parse::single,
    ),
    (
        "memory.memsw.usage_in_bytes",
        "memory.memsw.usage_in_bytes",
        parse::single,
    ),
    (
        "memory.memsw.limit_in_bytes",
        "memory.memsw.limit_in_bytes",
        parse::single,
    ),
    ("memory.failcnt", "memory.failcnt", parse::single),
    (
        "memory.memsw.failcnt",
        "memory.memsw.failcnt",
        parse::single,
    ),
];

/// What is looked at together: a file, or all files of a cgroup.
#[derive(Debug)]
struct Source {
    files: Vec<(ProcFile, &'static str, Parse)>,
    row: Row,
    log: CounterLog,
    pace: Pace,
}

impl Source {
    fn new(name: String, shares: u64, files: Vec<(ProcFile, &'static str, Parse)>) -> Source {
        Source {
            files,
            row: Row::default(),
            log: CounterLog::new(name),
            pace: Pace::new(shares),
        }
    }

    /// A file below `/proc`. Where pressure is switched off, opening succeeds and reading does not.
    fn open(roots: &Roots, name: &str, shares: u64, parse: Parse) -> io::Result<Source> {
        let mut file = ProcFile::open(&roots.proc.join(name))?;
        file.read()?;
        Ok(Source::new(
            format!("proc/{name}"),
            shares,
            vec![(file, "", parse)],
        ))
    }

    fn look(&mut self, time_ns: u64) {
        self.row.begin();
        // What can no longer be read is gone: a cgroup that was removed. The rest goes on.
        self.files.retain_mut(|(file, prefix, parse)| {
            let text = file.read();
            self.row.part(prefix);
            text.map(|text| parse(text, &mut self.row)).is_ok()
        });
        if !self.files.is_empty() {
            self.row.log(time_ns, &mut self.log);
        }
    }
}

/// Files that are looked at beside `/proc/vmstat` where somebody else says when: in a guest.
#[derive(Debug)]
pub(crate) struct Files(Vec<Source>);

impl Files {
    /// Memory, zones, disks and pressure; what this kernel does not have is left out.
    pub(crate) fn beside_vmstat() -> Files {
        let files = FILES.into_iter().filter(|(name, ..)| *name != "vmstat");
        let roots = Roots::default();
        Files(
            files
                .filter_map(|(name, shares, parse)| Source::open(&roots, name, shares, parse).ok())
                .collect(),
        )
    }

    /// Looks at all of them.
    pub(crate) fn look(&mut self, time_ns: u64) {
        self.0.iter_mut().for_each(|source| source.look(time_ns));
    }

    /// What they said.
    pub(crate) fn into_logs(self) -> impl Iterator<Item = CounterLog> {
        self.0.into_iter().map(|source| source.log)
    }
}

/// Opens the files that are looked at everywhere, and those of cgroups; `remarks` names the files that cannot be opened.
fn open(roots: &Roots, cgroups: &[String], remarks: &mut Vec<String>) -> io::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for (name, shares, parse) in FILES {
        let path = roots.proc.join(name);
        match Source::open(roots, name, shares, parse) {
            Ok(source) => sources.push(source),
            Err(error) if name == "vmstat" => {
                let text = format!("{}: {error}", path.display());
                return Err(io::Error::new(error.kind(), text));
            }
            Err(error) => remarks.push(lacking(&path, &error)),
        }
    }
    for group in cgroups {
        sources.push(Source::new(
            group.clone(),
            CGROUP_SHARES,
            cgroup(&Path::new("/").join(group))?,
        ));
    }
    Ok(sources)
}

/// Looks at a system whose past nobody asks for: what files say now.
#[derive(Debug)]
pub struct Watcher {
    sources: Vec<Source>,
    tasks: Tasks,
}

/// A task as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskNow {
    /// Its process id.
    pub pid: u32,
    /// `comm`.
    pub name: String,
    /// Its `stat`: fields by name, as in the log of a recording.
    pub fields: BTreeMap<String, u64>,
}

impl Watcher {
    /// Opens the files of memory, zones, disks and pressure, and those of cgroups, by their directories without the leading
    /// slash; `remarks` names the files that cannot be opened.
    ///
    /// # Errors
    ///
    /// When there is no `/proc/vmstat`, or one of the cgroups is none.
    pub fn open(
        roots: &Roots,
        cgroups: &[String],
        remarks: &mut Vec<String>,
    ) -> io::Result<Watcher> {
        Ok(Watcher {
            sources: open(roots, cgroups, remarks)?,
            // A task is not busy because of what it did before the watcher looked.
            tasks: Tasks::new(&roots.proc, u64::MAX),
        })
    }

    /// What each file says now: its fields by name. The name of the file is that of its log in a recording.
    pub fn look(&mut self, time_ns: u64) -> impl Iterator<Item = (&str, BTreeMap<String, u64>)> {
        self.sources.iter_mut().map(move |source| {
            source.look(time_ns);
            source.log.forget_before(time_ns);
            (source.log.file.as_str(), fields(&source.log))
        })
    }

    /// The busiest tasks as they are now; to be called about four times a second.
    pub fn tasks(&mut self, time_ns: u64) -> impl Iterator<Item = TaskNow> {
        self.tasks.look(time_ns);
        self.tasks.forget_before(time_ns);
        let now = self.tasks.logs().filter(|task| task.end_ns.is_none());
        now.map(|task| TaskNow {
            pid: task.pid,
            name: task.name.clone(),
            fields: fields(&task.log),
        })
    }
}

/// The fields of the last look of a log.
fn fields(log: &CounterLog) -> BTreeMap<String, u64> {
    let fields = log.latest();
    fields
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Everything that is counted.
#[derive(Debug)]
pub(super) struct Counters {
    sources: Vec<Source>,
    pub(super) tasks: Tasks,
    ticks: u64,
    task_pace: Pace,
}

impl Counters {
    /// Opens what there is; the rest is told in `remarks`.
    pub(super) fn open(
        roots: &Roots,
        cgroups: &[String],
        began_ticks: u64,
        remarks: &mut Vec<String>,
    ) -> io::Result<Counters> {
        Ok(Counters {
            sources: open(roots, cgroups, remarks)?,
            tasks: Tasks::new(&roots.proc, began_ticks),
            ticks: 0,
            task_pace: Pace::new(TASK_SHARES),
        })
    }

    /// Looks at what is due.
    pub(super) fn look(&mut self, time_ns: u64) {
        let mut before_ns = thread_cpu_ns();
        for source in &mut self.sources {
            if source.pace.tick() {
                source.look(time_ns);
                let now_ns = thread_cpu_ns();
                source.pace.took(now_ns - before_ns, TICK_NS);
                before_ns = now_ns;
            }
        }
        if TASK_TICKS.contains(&(self.ticks % 10)) && self.task_pace.tick() {
            self.tasks.look(time_ns);
            let took_ns = thread_cpu_ns() - before_ns;
            let between_ns = TICK_NS * 10 / TASK_TICKS.len() as u64;
            self.task_pace.took(took_ns, between_ns);
        }
        self.ticks += 1;
    }

    /// Looks at all files, due or not, so that the first look and the last one are whole.
    pub(super) fn look_at_all(&mut self, time_ns: u64) {
        self.sources
            .iter_mut()
            .for_each(|source| source.look(time_ns));
        self.tasks.look(time_ns);
    }

    /// Forgets what was before a time.
    pub(super) fn forget_before(&mut self, time_ns: u64) {
        let logs = self.sources.iter_mut().map(|source| &mut source.log);
        logs.for_each(|log| log.forget_before(time_ns));
        self.tasks.forget_before(time_ns);
    }

    /// What the files said.
    pub(super) fn logs(&self) -> impl Iterator<Item = &CounterLog> {
        self.sources.iter().map(|source| &source.log)
    }
}

/// What it means that a file cannot be read.
fn lacking(path: &Path, error: &io::Error) -> String {
    let path = path.display().to_string();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported if path.contains("pressure") => {
            format!("{path} is not recorded: this kernel counts no pressure (boot it with psi=1)")
        }
        _ => format!("{path} is not recorded: {error}"),
    }
}

/// The files of a cgroup that are there.
fn cgroup(path: &Path) -> io::Result<Vec<(ProcFile, &'static str, Parse)>> {
    let files = CGROUP_FILES
        .into_iter()
        .filter_map(|(name, prefix, parse)| {
            let file = ProcFile::open(&path.join(name)).ok()?;
            Some((file, prefix, parse))
        });
    let files: Vec<_> = files.collect();
    if files.is_empty() {
        let text = format!(
            "{}: expected a cgroup with the memory controller, found neither memory.current nor memory.usage_in_bytes in it",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_guest_says_of_memory_and_disks_what_a_host_does() {
        let mut files = Files::beside_vmstat();
        files.look(3);
        files.look(4);
        let logs: Vec<CounterLog> = files.into_logs().collect();
        let of = |name: &str| logs.iter().find(|log| log.file == name);
        let memory = of("proc/meminfo").expect("everywhere");
        assert!(memory.last("SwapFree").is_some() && memory.len() == 2);
        assert!(of("proc/vmstat").is_none() && of("proc/zoneinfo").is_some());
    }

    #[test]
    fn a_watcher_keeps_nothing_but_what_is_now() {
        let mut remarks = Vec::new();
        let mut watcher = Watcher::open(&Roots::default(), &[], &mut remarks).expect("opened");
        for time in 1..4 {
            let said: Vec<_> = watcher.look(time).collect();
            let (file, fields) = &said[0];
            assert!(*file == "proc/vmstat" && fields["nr_free_pages"] > 0);
        }
        assert!(watcher.sources.iter().all(|source| source.log.len() == 1));
        // This test is a task that is busy.
        let own = std::process::id();
        let is_seen = (4..400).any(|time| {
            let mut tasks = watcher.tasks(time);
            tasks.any(|task| task.pid == own && task.fields["rss"] > 0)
        });
        assert!(is_seen);
        let none = Watcher::open(&Roots::default(), &["proc".into()], &mut remarks);
        assert!(none.expect_err("no cgroup").to_string().contains("cgroup"));
    }

    #[test]
    fn a_cgroup_is_one_log_until_it_is_removed() {
        let place = tempfile::tempdir().expect("a directory");
        let group = place.path().join("group");
        fs::create_dir(&group).expect("made");
        let write = |name: &str, text: &str| fs::write(group.join(name), text).expect("written");
        assert!(
            cgroup(&group)
                .expect_err("empty")
                .to_string()
                .contains("memory controller")
        );
        write("memory.current", "4096\n");
        write("memory.max", "max\n");
        write("memory.stat", "anon 17\nfile 3\npgscan 9\n");
        write("memory.events", "low 0\nhigh 5\nmax 0\noom 0\n");
        write(
            "memory.pressure",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n",
        );
        let name = group.to_string_lossy().trim_start_matches('/').to_owned();
        let mut remarks = Vec::new();
        let roots = Roots::default();
        let mut counters =
            Counters::open(&roots, std::slice::from_ref(&name), 0, &mut remarks).expect("opened");
        counters.look_at_all(5);
        write("memory.current", "8192\n");
        write("memory.stat", "anon 17\nfile 3\npgscan 10\n");
        counters.look_at_all(7);
        let log = counters.logs().find(|log| log.file == name).expect("a log");
        assert_eq!(log.values("memory.current"), [(5, 4096), (7, 8192)]);
        assert_eq!(log.last("memory.max"), Some(u64::MAX));
        assert_eq!(log.values("memory.stat/pgscan"), [(5, 9), (7, 10)]);
        assert_eq!(log.last("memory.events/high"), Some(5));
        assert_eq!(log.last("memory.pressure/some"), Some(12));
        let vmstat = counters
            .logs()
            .find(|log| log.file == "proc/vmstat")
            .expect("a log");
        assert_eq!(vmstat.len(), 2);
    }
}

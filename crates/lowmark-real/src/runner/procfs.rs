//! What `/proc` says about memory management.

use lowmark_spec::workload::{Cmp, Condition};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};

/// `/proc/vmstat` as it is. Its fields are looked at once for each read(2): a small buffer that grows on the way
/// would show them at different times, and be among what they count.
pub fn vmstat_text() -> io::Result<String> {
    const LENGTH: usize = 64 << 10;
    let mut text = String::with_capacity(LENGTH);
    fs::File::open("/proc/vmstat")?.read_to_string(&mut text)?;
    Ok(text)
}

/// `/proc/vmstat` by name.
pub fn vmstat() -> io::Result<BTreeMap<String, u64>> {
    Ok(parse_vmstat(&vmstat_text()?))
}

/// The fields of a `/proc/vmstat`. What is no number is left out.
pub fn parse_vmstat(text: &str) -> BTreeMap<String, u64> {
    let fields = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    });
    fields.collect()
}

/// A kernel thread or task, from `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Process id.
    pub pid: u32,
    /// `comm`.
    pub name: String,
    /// `S` is asleep.
    pub state: char,
    /// User time, ns.
    pub user_ns: u64,
    /// System time, ns.
    pub system_ns: u64,
}

/// The kernel threads that run now.
pub fn kernel_threads() -> io::Result<Vec<Thread>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A process may end while it is looked at.
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        let Some((mut thread, parent)) = parse_stat(pid, &stat) else {
            continue;
        };
        const KTHREADD: u32 = 2;
        if pid != KTHREADD && parent != KTHREADD {
            continue;
        }
        // `stat` counts ticks, `schedstat` nanoseconds; kernel threads have system time only.
        let precise = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok();
        let precise = precise
            .as_deref()
            .and_then(|text| text.split(' ').next()?.parse().ok());
        if let Some(run_ns) = precise.filter(|&ns| ns > 0) {
            (thread.user_ns, thread.system_ns) = (0, run_ns);
        }
        threads.push(thread);
    }
    threads.sort_by_key(|thread| thread.pid);
    Ok(threads)
}

/// A line of `/proc/PID/stat`, and the parent's id.
fn parse_stat(pid: u32, stat: &str) -> Option<(Thread, u32)> {
    // The name may hold spaces and parentheses; the last one ends it.
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = tail.split_whitespace().collect();
    const NS_PER_TICK: u64 = 10_000_000; // USER_HZ is 100 on every architecture that matters here
    let ticks = |at: usize| Some(fields.get(at)?.parse::<u64>().ok()? * NS_PER_TICK);
    let thread = Thread {
        pid,
        name,
        state: fields.first()?.chars().next()?,
        user_ns: ticks(11)?,
        system_ns: ticks(12)?,
    };
    Some((thread, fields.get(1)?.parse().ok()?))
}

/// Looks at kswapd.
#[derive(Debug, Clone, Default)]
pub struct Kswapd {
    pids: Vec<u32>,
}

impl Kswapd {
    /// Finds the kswapd of each node.
    pub fn find() -> io::Result<Kswapd> {
        let threads = kernel_threads()?.into_iter();
        let kswapd = threads.filter(|thread| thread.name.starts_with("kswapd"));
        Ok(Kswapd {
            pids: kswapd.map(|thread| thread.pid).collect(),
        })
    }

    /// Whether it sleeps on every node. In `S` it waits for work; in `D` it waits for I/O.
    pub fn idle(&self) -> bool {
        self.pids.iter().all(|&pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
            let stat = stat.ok().and_then(|stat| parse_stat(pid, &stat));
            stat.is_none_or(|(thread, _)| thread.state == 'S')
        })
    }
}

/// Whether a condition holds.
pub(super) fn holds(condition: &Condition, kswapd: &Kswapd) -> io::Result<bool> {
    let Condition::Vmstat { field, cmp, value } = condition else {
        return Ok(kswapd.idle());
    };
    let found = vmstat()?.get(field).copied().ok_or_else(|| {
        io::Error::other(format!("/proc/vmstat of this kernel has no field {field}"))
    })?;
    Ok(match cmp {
        Cmp::Lt => found < *value,
        Cmp::Le => found <= *value,
        Cmp::Eq => found == *value,
        Cmp::Ge => found >= *value,
        Cmp::Gt => found > *value,
    })
}

/// Settings whose handlers compute all reserves again whether they are written or read, by the pages managed at that
/// time: what is looked at would no longer be what booting left (`lowmem_reserve_ratio_sysctl_handler` and
/// `sysctl_min_unmapped_ratio_sysctl_handler`, `sysctl_min_slab_ratio_sysctl_handler` in mm/page_alloc.c).
pub(crate) const CHANGED_BY_READING: [&str; 3] = [
    "lowmem_reserve_ratio",
    "min_unmapped_ratio",
    "min_slab_ratio",
];

/// The file of a setting that workloads name without a prefix.
pub fn setting_path(name: &str) -> String {
    const THP: &str = "/sys/kernel/mm/transparent_hugepage";
    if let Some(knob) = name.strip_prefix("thp.") {
        return format!("{THP}/{knob}");
    }
    if let Some(knob) = name.strip_prefix("khugepaged.") {
        return format!("{THP}/khugepaged/{knob}");
    }
    if let Some(knob) = name.strip_prefix("lru_gen.") {
        return format!("/sys/kernel/mm/lru_gen/{knob}");
    }
    // The only one with a hyphen.
    let name = if name == "page_cluster" {
        "page-cluster"
    } else {
        name
    };
    format!("/proc/sys/vm/{name}")
}

/// Changes a setting; the error names its file.
pub fn set(name: &str, value: &str) -> io::Result<()> {
    let path = setting_path(name);
    fs::write(&path, value).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("cannot write {value} to {path}: {error}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_are_understood() {
        let line = "7 (a) (b) S 2 0 0 0 -1 2129984 0 0 0 0 3 5 0 0 20 0 1 0 9 0 0";
        let (thread, parent) = parse_stat(7, line).expect("a line of stat");
        assert_eq!(
            (thread.name.as_str(), thread.state, parent),
            ("a) (b", 'S', 2)
        );
        assert_eq!((thread.user_ns, thread.system_ns), (30_000_000, 50_000_000));
        assert!(parse_stat(7, "7 (a").is_none());
    }

    #[test]
    fn settings_have_their_files() {
        assert_eq!(setting_path("page_cluster"), "/proc/sys/vm/page-cluster");
        assert_eq!(setting_path("dirty_bytes"), "/proc/sys/vm/dirty_bytes");
        assert!(setting_path("thp.defrag").ends_with("/transparent_hugepage/defrag"));
        let scan = setting_path("khugepaged.pages_to_scan");
        assert!(scan.ends_with("/transparent_hugepage/khugepaged/pages_to_scan"));
    }

    #[test]
    fn vmstat_of_this_machine_is_read() {
        assert!(vmstat().expect("/proc/vmstat").contains_key("pgfault"));
    }
}

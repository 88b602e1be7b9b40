//! The tasks and files of a load.
//!
//! What bounds the time of a load, by what a guest that is translated takes: an access that needs the disk takes up
//! to half a millisecond, one that goes through a file in order a few microseconds a page. So accesses at random
//! places are counted ([`RANDOM_MOST`]), and whole memory is gone through twice at most after it was filled.

use super::Class;
use super::groups::{self, Inside};
use crate::random::Stream;

/// What a task may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    /// Memory or file, MB, of all its processes together.
    pub(super) mb: u64,
    /// Whether the machine has two nodes.
    pub(super) two_nodes: bool,
    /// Where it is, if the load has a memory cgroup.
    pub(super) group: Option<Inside>,
}

/// Most accesses at random places, of all processes of a task.
const RANDOM_MOST: u64 = 24_000;
/// Least of them.
const RANDOM_LEAST: u64 = 4_000;
/// Blocks of reads and writes, KiB.
const BLOCKS_KIB: [u64; 5] = [4, 16, 64, 128, 1024];
/// Orders in which everything is gone through.
const WHOLE: [&str; 4] = ["seq", "seq", "reverse", "stride(16)"];
/// Orders of places that are drawn.
const DRAWN: [&str; 4] = ["random", "zipf(0.99)", "zipf(0.7)", "gauss(0.1)"];
/// Names of tasks, in their order.
const NAMES: [&str; 2] = ["one", "two"];

/// A load in the making.
#[derive(Debug, Default)]
pub(super) struct Draft {
    tasks: String,
    files: String,
    titles: Vec<String>,
}

fn one_of<T: Copy, const N: usize>(of: [T; N], stream: &mut Stream) -> T {
    of[stream.below(N as u64) as usize]
}

/// One time in `n`.
fn once_in(n: u64, stream: &mut Stream) -> bool {
    stream.below(n) == 0
}

impl Draft {
    /// Adds a task.
    pub(super) fn task(&mut self, class: Class, share: Share, stream: &mut Stream) {
        let name = NAMES[self.titles.len() % NAMES.len()];
        let processes = if once_in(3, stream) {
            stream.between(2, 3)
        } else {
            1
        };
        let mut run = Vec::new();
        if share.two_nodes && once_in(2, stream) {
            run.push(format!("{{ node = {} }}", stream.below(2)));
        }
        let task = Task {
            name,
            processes,
            mb: share.mb,
        };
        let what = match class {
            Class::Private | Class::Shared => task.anonymous(class, &mut run, stream),
            Class::Mapped => task.mapped(&mut run, &mut self.files, stream),
            Class::Read => task.read(&mut run, &mut self.files, stream),
            // A task has a class of its own: `Mixed` is of several.
            Class::Write | Class::Mixed => task.write(&mut run, &mut self.files, stream),
        };
        self.titles.push(match processes {
            1 => format!("a process {what}"),
            _ => format!("{processes} processes {what}"),
        });
        let group = share.group.map_or(String::new(), |inside| {
            format!("cgroup = \"{}\"\n", groups::of_task(inside, name))
        });
        let run: String = run.iter().map(|line| format!("  {line},\n")).collect();
        self.tasks +=
            &format!("\n[task.{name}]\nprocesses = {processes}\n{group}run = [\n{run}]\n");
    }

    /// One time in eight: a task that asks for huge pages while the others are at work, once or twice.
    pub(super) fn blocks(&mut self, stream: &mut Stream) {
        if !once_in(8, stream) {
            return;
        }
        let (count, pace_ms) = (stream.between(8, 40), stream.between(20, 100));
        let alloc = format!(
            "{{ alloc = \"blocks\", order = \"HPAGE_ORDER\", gfp = \"hugetlb\", count = {count}, pace = \"{pace_ms}ms\", series = \"blocks\" }}"
        );
        let mut run = vec!["{ barrier = \"filled\" }".into(), alloc.clone()];
        if once_in(2, stream) {
            run.extend(["{ free = \"blocks\" }".into(), alloc]);
        }
        let run: String = run.iter().map(|line| format!("  {line},\n")).collect();
        self.titles
            .push(format!("{count} huge pages are asked for"));
        self.tasks += &format!("\n[task.blocks]\nrun = [\n{run}]\n");
    }

    /// What the load is, one line.
    pub(super) fn title(&self, limit_mb: Option<u64>) -> String {
        let tasks = self.titles.join("; ");
        match limit_mb {
            Some(limit) => format!("In a memory cgroup of {limit} MB: {tasks}"),
            None => tasks,
        }
    }

    /// The names of the tasks.
    pub(super) fn tasks(&self) -> &'static [&'static str] {
        &NAMES[..self.titles.len().min(NAMES.len())]
    }

    /// The sections of files, barrier and tasks.
    pub(super) fn sections(&self) -> String {
        format!("{}\n[barrier.filled]\n{}", self.files, self.tasks)
    }
}

/// A task that is being written.
struct Task {
    name: &'static str,
    processes: u64,
    mb: u64,
}

impl Task {
    /// Memory of one process, MB.
    fn own_mb(&self) -> u64 {
        (self.mb / self.processes).max(1)
    }

    /// Accesses at random places, of one process.
    fn drawn(&self, stream: &mut Stream) -> u64 {
        stream.between(RANDOM_LEAST, RANDOM_MOST) / self.processes
    }

    /// A file of the task.
    fn file(&self, kind: &str, mb: u64, more: &str) -> String {
        format!(
            "\n[file.{}]\nkind = \"{kind}\"\nsize = \"{mb}M\"\n{more}",
            self.file_name()
        )
    }

    fn file_name(&self) -> String {
        format!("data-{}", self.name)
    }

    fn anonymous(&self, class: Class, run: &mut Vec<String>, stream: &mut Stream) -> String {
        let (kind, what) = match class {
            Class::Shared => ("anon-shared", "shared"),
            _ => ("anon-private", "private"),
        };
        let mb = self.own_mb();
        run.push(format!(
            "{{ map = \"m\", kind = \"{kind}\", size = \"{mb}M\" }}"
        ));
        run.push(if once_in(4, stream) {
            "{ memset = \"m\" }".into()
        } else {
            "{ touch = \"m\", access = \"write\" }".into()
        });
        self.meet(run, stream);
        let access = one_of(["read", "write", "write"], stream);
        if once_in(3, stream) {
            self.advise(class, mb, run, stream);
        }
        let how = self.touches(access, mb, run, stream);
        match stream.below(8) {
            0 | 1 => run.push("{ unmap = \"m\" }".into()),
            2 if mb >= 8 => run.push("{ unmap = \"m\", length = \"1M\", every = \"2M\" }".into()),
            _ => {}
        }
        format!("{how} {mb} MB of {what} memory")
    }

    /// Says something of a part of a map, or of every other MB of it. The kernels of loads know it all.
    fn advise(&self, class: Class, mb: u64, run: &mut Vec<String>, stream: &mut Stream) {
        let free = match class {
            Class::Private => "free",
            _ => "dontneed",
        };
        let advice = [
            "dontneed",
            free,
            "cold",
            "pageout",
            "willneed",
            "populate",
            "populate-read",
            "nohugepage",
        ];
        let part = (mb / stream.between(2, 6)).max(1);
        let offset = stream.between(0, mb - part);
        run.push(if once_in(4, stream) { "{ punch = \"m\", length = \"1M\", every = \"2M\" }".into() } else { format!(
            "{{ advise = \"m\", advice = \"{}\", offset = \"{offset}M\", length = \"{part}M\" }}",
            one_of(advice, stream)
        ) });
    }

    fn mapped(&self, run: &mut Vec<String>, files: &mut String, stream: &mut Stream) -> String {
        let mb = self.mb;
        *files += &self.file("random", mb, "");
        let advice = if once_in(3, stream) {
            one_of(["random", "sequential"], stream)
        } else {
            "normal"
        };
        let private = once_in(3, stream);
        let kind = if private {
            "file-private"
        } else {
            "file-shared"
        };
        run.push(format!(
            "{{ map = \"m\", kind = \"{kind}\", file = \"{}\" }}",
            self.file_name()
        ));
        if advice != "normal" {
            run.push(format!("{{ advise = \"m\", advice = \"{advice}\" }}"));
        }
        self.meet(run, stream);
        // Without readahead every page is a request of its own.
        let whole_is_cheap = advice != "random" && mb <= 220;
        let access = if !private && once_in(4, stream) {
            "write"
        } else {
            "read"
        };
        let how = if whole_is_cheap && once_in(2, stream) {
            let passes = stream.between(1, 2);
            run.push(format!(
                "{{ touch = \"m\", access = \"{access}\", passes = {passes} }}"
            ));
            "goes through"
        } else {
            self.places(access, mb, run, stream)
        };
        format!("{how} a mapped file of {mb} MB")
    }

    fn read(&self, run: &mut Vec<String>, files: &mut String, stream: &mut Stream) -> String {
        let mb = self.mb;
        let kind = one_of(["random", "random", "zero", "sparse"], stream);
        *files += &self.file(kind, mb, "");
        let file = self.file_name();
        self.meet(run, stream);
        let block = one_of(BLOCKS_KIB, stream);
        let blocks = 2 * mb * 1024 / block;
        if once_in(2, stream) {
            let passes = stream.between(1, 2);
            run.push(format!(
                "{{ read = \"{file}\", block = \"{block}K\", passes = {passes} }}"
            ));
            return format!("reads {mb} MB");
        }
        let order = one_of(["reverse", "random", "zipf(0.99)", "gauss(0.1)"], stream);
        let count = self.drawn(stream).min(blocks / self.processes).max(1);
        run.push(format!(
            "{{ read = \"{file}\", block = \"{block}K\", order = \"{order}\", count = {count} }}"
        ));
        format!("reads blocks of {block} KB of {mb} MB")
    }

    fn write(&self, run: &mut Vec<String>, files: &mut String, stream: &mut Stream) -> String {
        let mb = self.own_mb();
        let out = format!("out-{}", self.name);
        let here = format!("{out}$idx");
        let section = |size: u64, exists: bool| {
            format!(
                "\n[file.{out}]\nkind = \"random\"\nsize = \"{size}M\"\nexists = {exists}\ncopies = {}\n",
                self.processes
            )
        };
        self.meet(run, stream);
        let block = one_of(BLOCKS_KIB, stream);
        let what = match stream.below(4) {
            0 => {
                *files += &section(mb, false);
                let rate = if once_in(3, stream) {
                    format!(", rate = \"{}M/s\"", stream.between(20, 80))
                } else {
                    String::new()
                };
                run.push(format!(
                    "{{ write = \"{here}\", block = \"{block}K\"{rate} }}"
                ));
                "writes a file"
            }
            1 => {
                *files += &section(0, false);
                let count = (mb * 1024 / 8 / block).max(1);
                let sleep_ms = stream.between(5, 200);
                run.push(format!(
                    "{{ repeat = 8, do = [{{ append = \"{here}\", block = \"{block}K\", count = {count} }}, {{ sleep = \"{sleep_ms}ms\" }}] }}"
                ));
                "appends to a file"
            }
            2 => {
                *files += &section(mb, true);
                let blocks = 2 * mb * 1024 / block;
                let count = self.drawn(stream).min(blocks).max(1);
                let order = one_of(DRAWN, stream);
                run.push(format!(
                    "{{ write = \"{here}\", block = \"{block}K\", order = \"{order}\", count = {count} }}"
                ));
                "writes blocks of a file"
            }
            _ => {
                // Half of it is read, half written.
                let half = (self.mb / 2).max(1);
                *files += &self.file("random", half, "");
                *files += &section(half, false);
                run.push(format!(
                    "{{ copy = \"{}\", to = \"{here}\", block = \"{block}K\" }}",
                    self.file_name()
                ));
                "copies a file"
            }
        };
        match stream.below(6) {
            0 => run.push(format!("{{ fsync = \"{here}\" }}")),
            1 => run.push(format!("{{ fdatasync = \"{here}\" }}")),
            2 => run.push("{ sync = true }".into()),
            3 => run.push(format!("{{ truncate = \"{here}\" }}")),
            4 => run.push(format!("{{ delete = \"{here}\" }}")),
            _ => {}
        }
        format!("{what} of {mb} MB")
    }

    /// All tasks have what they need: whoever is ahead would be through before memory runs short.
    fn meet(&self, run: &mut Vec<String>, stream: &mut Stream) {
        run.push("{ barrier = \"filled\" }".into());
        if once_in(4, stream) {
            run.push(format!("{{ burn = \"{}ms\" }}", stream.between(10, 300)));
        }
        run.push(format!("{{ phase = \"{}\" }}", self.name));
    }

    /// What is done to a map that is in memory or swap.
    fn touches(
        &self,
        access: &str,
        mb: u64,
        run: &mut Vec<String>,
        stream: &mut Stream,
    ) -> &'static str {
        if once_in(2, stream) {
            let (order, passes) = (one_of(WHOLE, stream), stream.between(1, 2));
            run.push(format!(
                "{{ touch = \"m\", access = \"{access}\", order = \"{order}\", passes = {passes} }}"
            ));
            "goes through"
        } else {
            self.places(access, mb, run, stream)
        }
    }

    /// Places of a map: drawn, or a hot part of it beside the rest.
    fn places(
        &self,
        access: &str,
        mb: u64,
        run: &mut Vec<String>,
        stream: &mut Stream,
    ) -> &'static str {
        let count = self.drawn(stream);
        if mb < 8 || once_in(2, stream) {
            let order = one_of(DRAWN, stream);
            run.push(format!(
                "{{ touch = \"m\", access = \"{access}\", order = \"{order}\", count = {count} }}"
            ));
            return "touches places in";
        }
        // A part that fits, now and then left for the others.
        let hot = mb / stream.between(4, 8);
        let offset = stream.between(0, mb - hot);
        let rounds = stream.between(2, 5);
        let beside = (count / rounds).max(1);
        run.push(format!(
            "{{ repeat = {rounds}, do = [{{ touch = \"m\", access = \"{access}\", order = \"random\", offset = \"{offset}M\", \
             length = \"{hot}M\", count = {} }}, {{ touch = \"m\", access = \"{access}\", order = \"random\", count = {beside} }}] }}",
            2 * beside
        ));
        "keeps to a part of"
    }
}

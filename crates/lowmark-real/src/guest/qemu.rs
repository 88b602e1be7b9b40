//! QEMU: where it is, its command line, and one run of it.
//!
//! A run never outlives its caller: QEMU is killed when the run is dropped, when the time is up, and when
//! the thread that started it dies.

use super::disks::{Disk, check_room};
use super::{GuestError, cache};
use crate::protocol::{RESULT_PORT, TRACE_PORT};
use crate::runner::sys;
use lowmark_spec::Machine;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const PROGRAM: &str = "qemu-system-x86_64";
/// Environment variable that names QEMU.
const VARIABLE: &str = "LOWMARK_QEMU";
/// Lines of the console that are kept.
const CONSOLE_LINES_MAX: usize = 2_000;
/// Longest line of the console that is kept.
const CONSOLE_LINE_MAX: u64 = 4_096;
/// Room that is left on the disk at least while a guest runs.
const ROOM: u64 = 64 << 20;
/// MiB of RAM up to which QEMU touches all of a guest's memory before the guest starts. Otherwise the host
/// clears a page in the midst of whatever the guest does when it uses that page first, and the guest's first
/// seconds cost more than those for which the machine was calibrated. Larger guests do not pay the seconds that
/// it takes, nor the memory.
const PREALLOCATED_MAX: u64 = 1_024;

/// What executes the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accel {
    /// The machine's own processor.
    Kvm,
    /// QEMU's translator: everywhere, but slow.
    Tcg,
}

impl Accel {
    /// QEMU's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Accel::Kvm => "kvm",
            Accel::Tcg => "tcg",
        }
    }

    /// The note that a recording of a guest with `cpus` CPUs has about how QEMU executes them; none where each runs by itself.
    pub(super) fn note(self, cpus: u32) -> Option<String> {
        (self == Accel::Tcg && cpus > 1).then(|| {
            format!(
                "QEMU without KVM executes the {cpus} CPUs in turn on one thread: a busy CPU slows down the others, and a \
                 task that waits for another CPU, as kswapd does to have the TLB of that flushed for each page it writes, \
                 waits until that CPU's turn is over, up to a tick"
            )
        })
    }
}

/// Finds QEMU: `LOWMARK_QEMU`, the PATH, the cache.
///
/// # Errors
///
/// [`GuestError::NoQemu`] when it is nowhere.
pub fn find() -> Result<PathBuf, GuestError> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        let path = PathBuf::from(named);
        let program = path.display().to_string();
        return path
            .is_file()
            .then_some(path)
            .ok_or(GuestError::NoQemu { program });
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let unpacked = cache().join("qemu");
    let mut directories = std::env::split_paths(&path).chain([unpacked]);
    let found = directories.find_map(|directory| {
        let program = directory.join(PROGRAM);
        program.is_file().then_some(program)
    });
    found.ok_or_else(|| GuestError::NoQemu {
        program: PROGRAM.into(),
    })
}

/// What QEMU is started with.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    pub(super) qemu: &'a Path,
    pub(super) accel: Accel,
    pub(super) machine: &'a Machine,
    pub(super) kernel: &'a Path,
    pub(super) initramfs: &'a Path,
    /// More for the kernel's command line.
    pub(super) append: &'a [String],
    pub(super) disks: &'a [Disk],
    /// Where lines and the trace go.
    pub(super) results: &'a Path,
    pub(super) trace: Option<&'a Path>,
}

/// Commas in a value of QEMU's options are doubled.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

impl Launch<'_> {
    /// The command line.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        for option in ["-nodefaults", "-no-user-config", "-no-reboot"] {
            arguments.push(option.into());
        }
        let mut add = |option: &str, value: String| {
            arguments.push(option.into());
            arguments.push(value.into());
        };
        self.processors(&mut add);
        self.memory(&mut add);
        add("-display", "none".into());
        add("-monitor", "none".into());
        add("-serial", "stdio".into());
        self.kernel(&mut add);
        self.drives(&mut add);
        self.ports(&mut add);
        arguments
    }

    fn processors(&self, add: &mut impl FnMut(&str, String)) {
        add(
            "-accel",
            match self.accel {
                Accel::Kvm => "kvm".into(),
                // With a thread for each CPU, one of them may meet the breakpoint of a static key that another
                // has just taken back: the kernel then stops with `Oops: int3`, the likelier the busier the host.
                Accel::Tcg => "tcg,thread=single".into(),
            },
        );
        // cmpxchg16b breaks flags in the translator of QEMU 7.2, and `max` is twice as slow.
        let cpu = match self.accel {
            Accel::Kvm => "host",
            Accel::Tcg => "qemu64,-cx16",
        };
        add("-cpu", cpu.into());
        add("-smp", self.machine.cpus.to_string());
    }

    fn memory(&self, add: &mut impl FnMut(&str, String)) {
        let machine = self.machine;
        // Whole MiB: QEMU rounds anyway.
        let megabytes = |bytes: u64| bytes.div_ceil(1 << 20);
        let total = machine
            .nodes
            .iter()
            .map(|node| megabytes(node.ram))
            .sum::<u64>();
        add("-m", format!("{total}M"));
        let prealloc = if total <= PREALLOCATED_MAX {
            ",prealloc=on"
        } else {
            ""
        };
        let nodes = machine.nodes.len() as u32;
        for (at, node) in machine.nodes.iter().enumerate() {
            let size = megabytes(node.ram);
            add(
                "-object",
                format!("memory-backend-ram,id=ram{at},size={size}M{prealloc}"),
            );
            if nodes > 1 {
                let cpus = (0..machine.cpus).filter(|cpu| cpu % nodes == at as u32);
                let cpus: String = cpus.map(|cpu| format!(",cpus={cpu}")).collect();
                add("-numa", format!("node,nodeid={at},memdev=ram{at}{cpus}"));
            }
        }
        // Of several nodes each names its own.
        let memory = if nodes > 1 {
            ""
        } else {
            ",memory-backend=ram0"
        };
        add("-machine", format!("q35{memory}"));
    }

    fn kernel(&self, add: &mut impl FnMut(&str, String)) {
        add("-kernel", self.kernel.to_string_lossy().into_owned());
        add("-initrd", self.initramfs.to_string_lossy().into_owned());
        let mut append = String::from(
            "console=ttyS0 quiet panic=-1 oops=panic rootfstype=ramfs rdinit=/init psi=1 tsc=reliable \
             no_timer_check mitigations=off nokaslr",
        );
        // Debian's kernels move pages to the node of the task that uses them as soon as there are two nodes; the
        // model does that for no kernel (`numa_balancing` in its coverage).
        if self.machine.nodes.len() > 1 {
            append.push_str(" numa_balancing=disable");
        }
        for more in self.append {
            append.push(' ');
            append.push_str(more);
        }
        add("-append", append);
    }

    fn drives(&self, add: &mut impl FnMut(&str, String)) {
        for disk in self.disks {
            let (path, serial) = (escaped(&disk.path), &disk.serial);
            let mut drive = format!(
                "file={path},if=none,id={serial},format=raw,cache=unsafe,discard=unmap,werror=report,\
                 rerror=report"
            );
            if let Some(rate) = disk.bandwidth {
                let device = &disk.device;
                drive.push_str(&format!(
                    ",throttling.bps-total={rate},throttling.group={device}"
                ));
            }
            add("-drive", drive);
            add(
                "-device",
                format!("virtio-blk-pci,drive={serial},serial={serial}"),
            );
        }
    }

    fn ports(&self, add: &mut impl FnMut(&str, String)) {
        add("-device", "virtio-serial-pci".into());
        let ports = [(Some(self.results), RESULT_PORT), (self.trace, TRACE_PORT)];
        for (at, (path, name)) in ports.into_iter().enumerate() {
            if let Some(path) = path {
                add(
                    "-chardev",
                    format!("file,id=port{at},path={}", escaped(path)),
                );
                add(
                    "-device",
                    format!("virtserialport,chardev=port{at},name={name}"),
                );
            }
        }
    }

    /// Starts QEMU.
    pub(super) fn start(&self) -> Result<Running, GuestError> {
        let mut command = Command::new(self.qemu);
        command
            .args(self.arguments())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        sys::die_with_parent(&mut command);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => GuestError::NoQemu {
                program: self.qemu.display().to_string(),
            },
            _ => GuestError::io(self.qemu, error),
        })?;
        let console = Arc::new(Mutex::new(VecDeque::new()));
        let said = Arc::new(Mutex::new(VecDeque::new()));
        let readers = [
            child
                .stdout
                .take()
                .map(|out| keep_lines(out, console.clone())),
            child.stderr.take().map(|out| keep_lines(out, said.clone())),
        ];
        Ok(Running {
            child,
            console,
            said,
            readers: readers.into_iter().flatten().collect(),
        })
    }
}

type Lines = Arc<Mutex<VecDeque<String>>>;

/// Reads lines as long as there are any, and keeps the last ones.
fn keep_lines(source: impl Read + Send + 'static, lines: Lines) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut source = BufReader::new(source);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = source
                .by_ref()
                .take(CONSOLE_LINE_MAX)
                .read_until(b'\n', &mut line);
            if !read.is_ok_and(|read| read > 0) {
                return;
            }
            let text = String::from_utf8_lossy(&line);
            let text: String = text
                .trim_end()
                .chars()
                .filter(|c| !c.is_control())
                .collect();
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == CONSOLE_LINES_MAX {
                lines.pop_front();
            }
            lines.push_back(text);
        }
    })
}

/// A QEMU that runs. Dropped, it is killed.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    console: Lines,
    said: Lines,
    readers: Vec<std::thread::JoinHandle<()>>,
}

/// How a run ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) console: Vec<String>,
    /// What QEMU said itself.
    pub(super) said: String,
}

/// Why a run was stopped.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Watch {
    /// It ended by itself.
    Ended,
    /// The time was up.
    TimedOut,
    /// The disk ran full, or a write of the guest's failed: it may go on trying for ever.
    DiskFull,
}

impl Running {
    /// Whether the console tells of a disk's error.
    fn lost_writes(&self) -> bool {
        let console = self.console.lock().unwrap_or_else(PoisonError::into_inner);
        super::console::disk_error(&Vec::from(console.clone())).is_some()
    }

    /// Waits for the end, or until the time is up or `directory` has no room left.
    pub(super) fn wait(
        mut self,
        limit: Duration,
        directory: &Path,
    ) -> Result<(Watch, Ended), GuestError> {
        const POLL: Duration = Duration::from_millis(10);
        const ROOM_POLLS: u32 = 50;
        let start = Instant::now();
        let failed = |error| GuestError::io(Path::new(PROGRAM), error);
        let mut polls = 0u32;
        let (watch, status) = loop {
            if let Some(status) = self.child.try_wait().map_err(failed)? {
                break (Watch::Ended, status);
            }
            polls = polls.wrapping_add(1);
            let full = polls.is_multiple_of(ROOM_POLLS)
                && (check_room(directory, ROOM).is_err() || self.lost_writes());
            if full || start.elapsed() >= limit {
                let watch = if full {
                    Watch::DiskFull
                } else {
                    Watch::TimedOut
                };
                self.child.kill().map_err(failed)?;
                break (watch, self.child.wait().map_err(failed)?);
            }
            std::thread::sleep(POLL);
        };
        for reader in self.readers.drain(..) {
            // A reader only keeps lines; it has nothing to say about its end.
            let _ = reader.join();
        }
        let lines = |lines: &Lines| lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let ended = Ended {
            status,
            console: lines(&self.console).into(),
            said: Vec::from(lines(&self.said)).join("; "),
        };
        Ok((watch, ended))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// The error of a QEMU that was killed or did not start, if it is one.
    pub(super) fn failure(&self) -> Option<GuestError> {
        if let Some(signal) = self.status.signal() {
            return Some(GuestError::QemuKilled {
                signal,
                console: super::console::tail(&self.console),
            });
        }
        (!self.status.success()).then(|| GuestError::QemuFailed {
            status: self.status.to_string(),
            said: if self.said.is_empty() {
                "it said nothing".into()
            } else {
                self.said.clone()
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_spec::machine::Node;

    fn launch<'a>(machine: &'a Machine, disks: &'a [Disk], accel: Accel) -> Launch<'a> {
        Launch {
            qemu: Path::new("qemu"),
            accel,
            machine,
            kernel: Path::new("a,b/vmlinuz"),
            initramfs: Path::new("initrd"),
            append: &[],
            disks,
            results: Path::new("a,b/results"),
            trace: None,
        }
    }

    fn line(launch: &Launch<'_>) -> String {
        let arguments = launch.arguments().into_iter();
        arguments
            .map(|a| a.to_string_lossy().into_owned())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn the_command_line_says_what_the_machine_is() {
        let mut machine = Machine::small(512 << 20, 1 << 30);
        machine.cpus = 2;
        let disks = [Disk {
            path: "x,y/swap0".into(),
            serial: "swap0".into(),
            device: "sda".into(),
            bandwidth: Some(500),
        }];
        let text = line(&launch(&machine, &disks, Accel::Tcg));
        for part in [
            "-accel tcg,thread=single -cpu qemu64,-cx16 -smp 2 -m 512M ",
            "-object memory-backend-ram,id=ram0,size=512M,prealloc=on -machine q35,memory-backend=ram0",
            "-no-reboot",
            "-kernel a,b/vmlinuz",
            "file=x,,y/swap0,if=none,id=swap0,",
            "throttling.bps-total=500,throttling.group=sda",
            "virtio-blk-pci,drive=swap0,serial=swap0",
            "file,id=port0,path=a,,b/results",
            "virtserialport,chardev=port0,name=lowmark.result",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("numa") && !text.contains("port1"), "{text}");
        assert!(Accel::Tcg.note(2).is_some() && Accel::Kvm.note(2).is_none());
        assert_eq!(Accel::Tcg.note(1), None);
        machine.nodes[0].ram = 2 << 30;
        let text = line(&launch(&machine, &[], Accel::Tcg));
        assert!(text.contains("size=2048M -machine"), "{text}");
    }

    #[test]
    fn nodes_get_their_memory_and_processors() {
        let mut machine = Machine::small(0, 0);
        machine.nodes = vec![Node { ram: 64 << 20 }, Node { ram: 128 << 20 }];
        machine.cpus = 3;
        let text = line(&launch(&machine, &[], Accel::Kvm));
        for part in [
            "-cpu host -smp 3 -m 192M",
            "memory-backend-ram,id=ram1,size=128M,prealloc=on",
            "node,nodeid=0,memdev=ram0,cpus=0,cpus=2",
            "node,nodeid=1,memdev=ram1,cpus=1",
            "nokaslr numa_balancing=disable",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}

//! Which machine and kernel a recording is of, and what they would be.

use crate::cli::Backend;
use crate::library::CommandLine;
use crate::{guests, observed, plan};
use lowmark_model::kernel::Sysctl;
use lowmark_real::host::Around;
use lowmark_real::{swap_area, zoneinfo};
use lowmark_record::Recording;
use lowmark_spec::machine::PAGE_SIZE;
use lowmark_spec::{KernelSpec, Machine, Overrides, Scenario, Source};
use lowmark_whatif::{Access, Candidate, Kind, Order, Question, Refusal};
use miette::{IntoDiagnostic, WrapErr, miette};

/// A built-in machine that stands in the text of a load until the recorded one takes its place.
pub(super) const ANY_MACHINE: &str = "guest-256m";

/// What was asked on the command line.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    /// Of the recorded machine, what the recording does not say.
    pub(super) was: &'a [(String, String)],
    pub(super) set: &'a [(String, String)],
    pub(super) kernel: Option<&'a str>,
    pub(super) machine: Option<&'a str>,
}

/// A machine and a kernel with its settings.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) machine: Machine,
    pub(super) kernel: KernelSpec,
    /// The memory cgroup around the load, whose limit is what memory is short by.
    pub(super) around: Option<Around>,
}

/// Both sides of a question.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) was: Side,
    pub(super) would_be: Side,
    pub(super) question: Question,
    /// The question is about what no reconstruction has.
    pub(super) refusal: Option<Refusal>,
}

impl Asked<'_> {
    /// What is asked, in words that go behind "with".
    pub(super) fn question(&self) -> String {
        let settings = self
            .set
            .iter()
            .map(|(name, value)| format!("{name} = {value}"));
        let kernel = self.kernel.map(str::to_owned);
        settings.chain(kernel).collect::<Vec<_>>().join(", ")
    }
}

impl Side {
    /// Pages of the cgroup around the load, of its zones, or of all RAM where no kernel reported zones.
    pub(super) fn memory(&self) -> u64 {
        if let Some(around) = &self.around {
            return around.memory / PAGE_SIZE;
        }
        match self.machine.zones.as_slice() {
            [] => self.machine.ram() / PAGE_SIZE,
            zones => zones.iter().map(|zone| zone.present).sum(),
        }
    }

    /// The kernel with its settings, as the command line takes it.
    pub(super) fn kernel_text(&self) -> String {
        let settings = self.kernel.sysctl.iter();
        let settings = settings.map(|(name, value)| format!(",{name}={value}"));
        format!("{}{}", self.kernel.version, settings.collect::<String>())
    }
}

impl Known {
    /// What a recording says, and what is asked.
    pub(super) fn of(recording: &Recording, asked: &Asked<'_>) -> miette::Result<Known> {
        let was = side(recording, asked, &[], None)?;
        let would_be = side(recording, asked, asked.set, asked.kernel)?;
        let changed: Vec<&str> = changed(&was, &would_be).collect();
        let page_cluster = was.kernel.sysctl.get("page_cluster").map(String::as_str);
        let question = Question {
            other_kernel: asked.kernel.is_some() && would_be.kernel.version != was.kernel.version,
            readahead_from_none: changed.contains(&"page_cluster") && page_cluster == Some("0"),
            less_memory: would_be.memory() < was.memory(),
        };
        let of_writers = changed.iter().find(|name| name.starts_with("dirty_"));
        let of_writers = of_writers.map(|name| Refusal {
            because: format!(
                "{name} acts on tasks that write files, and writers are not reconstructed yet"
            ),
            instead: "`lowmark why` says whether writers waited, and for which limit".to_owned(),
        });
        let refusal = of_writers.or_else(|| groups_inside(recording));
        Ok(Known {
            was,
            would_be,
            question,
            refusal,
        })
    }
}

/// Settings that would be other ones than they were, whether `--set` or `--kernel` says so.
fn changed<'a>(was: &'a Side, would_be: &'a Side) -> impl Iterator<Item = &'a str> {
    let settings = would_be.kernel.sysctl.iter();
    let other = settings.filter(|&(name, value)| was.kernel.sysctl.get(name) != Some(value));
    other.map(|(name, _)| name.as_str())
}

/// The name of a setting without what it is written under.
fn of_setting(name: &str) -> &str {
    name.trim_start_matches("kernel.sysctl.")
        .trim_start_matches("vm.")
}

/// The machine and the kernel of a recording, with what is set in their place.
fn side(
    recording: &Recording,
    asked: &Asked<'_>,
    set: &[(String, String)],
    kernel: Option<&str>,
) -> miette::Result<Side> {
    let around = around(recording, set)?;
    let set: Vec<(String, String)> = set
        .iter()
        .filter(|(name, _)| !is_of_group(name))
        .cloned()
        .collect();
    let set = set.as_slice();
    let recorded = kernel_of(recording)?;
    let name = asked.machine.unwrap_or(&recording.run.machine);
    let mut of_machine = machine_settings(recording, name, &recorded.version);
    of_machine.retain(|(known, _)| asked.was.iter().all(|(name, _)| name != known));
    of_machine.extend(asked.was.iter().cloned());
    let mut with: Vec<(String, String)> = of_machine;
    with.retain(|(known, _)| set.iter().all(|(name, _)| name != known));
    with.extend(set.iter().cloned());
    let changed = scenario(name, kernel.unwrap_or(&recorded.version), &with)?;
    let mut spec = match kernel {
        Some(_) => changed.kernel.clone(),
        None => recorded.clone(),
    };
    for (name, value) in &changed.kernel.sysctl {
        spec.sysctl.insert(name.clone(), value.clone());
    }
    for (name, value) in observed::settings(recording)
        .into_iter()
        .chain(reserve(recording))
    {
        // What the model's kernel does not have is not taken over.
        if Sysctl::default().set(&name, &value).is_ok() {
            spec.sysctl.entry(name).or_insert(value);
        }
    }
    let text = recording.system.as_deref();
    let text = text.map_or_else(
        || recorded.version.clone(),
        |it| guests::of_release(&it.release),
    );
    let mut machine = changed.machine.under_kernel(&text);
    if let Some(around) = &around {
        // The system has memory enough; how much more than enough makes no difference, and time.
        machine = roomy(machine, around.memory);
        if let Some(system) = recording.system.as_deref() {
            swap_area::observe(&mut machine, system);
        }
    } else if let Some(system) = recording.system.as_deref() {
        let ram = machine.ram();
        machine = zoneinfo::observed(&machine, system);
        if set.iter().any(|(name, _)| is_ram(name)) {
            give_ram(&mut machine, ram);
        }
    }
    Ok(Side {
        machine,
        kernel: spec,
        around,
    })
}

/// A workload on this system with cgroups of its own has several memories to be short of.
fn groups_inside(recording: &Recording) -> Option<Refusal> {
    let is_inside = |name: &String| {
        let of_group = name.strip_prefix("cgroup/");
        of_group.is_some_and(|rest| rest.contains('/'))
    };
    let several = recording.run.backend == HOST && recording.counters.keys().any(is_inside);
    several.then(|| Refusal {
        because: "the workload has memory cgroups of its own, and loads in several are not reconstructed yet"
            .to_owned(),
        instead: "run it without them: the whole of it is in a cgroup".to_owned(),
    })
}

/// The backend of runs in a cgroup of the system that lowmark is on.
const HOST: &str = "host";

/// Limits of the cgroup around a load.
const LIMITS: [&str; 2] = ["memory.max", "memory.swap.max"];

fn is_of_group(name: &str) -> bool {
    LIMITS.contains(&name)
}

/// The cgroup around the load of a recording, with the limits that are set.
fn around(recording: &Recording, set: &[(String, String)]) -> miette::Result<Option<Around>> {
    let mut around = match recording.run.backend.as_str() {
        HOST => Around::of(recording),
        _ => None,
    };
    for (name, value) in set.iter().filter(|(name, _)| is_of_group(name)) {
        let Some(around) = &mut around else {
            return Err(miette!(
                help =
                    "record the load with `lowmark run WORKLOAD --on host`, in a cgroup of its own",
                "--set {name}: the recording is not of a load in one memory cgroup"
            ));
        };
        let bytes = size(value).ok_or_else(|| {
            miette!(
                help = "for example --set memory.max=300M",
                "--set {name}: expected a size, found {value}"
            )
        })?;
        match name.as_str() {
            "memory.max" => around.memory = bytes,
            _ => around.swap = bytes,
        }
    }
    Ok(around)
}

/// A size in bytes, or with K, M or G behind it.
fn size(text: &str) -> Option<u64> {
    let (number, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// The machine with twice the memory of a cgroup and a gigabyte more, so that only the limit of the cgroup is met.
fn roomy(mut machine: Machine, limit: u64) -> Machine {
    const BESIDE: u64 = 1 << 30;
    let ram = limit.saturating_mul(2).saturating_add(BESIDE);
    machine.zones.clear();
    for node in &mut machine.nodes {
        node.ram = ram.next_multiple_of(1 << 20);
    }
    machine
}

/// `min_free_kbytes` of the recorded kernel.
pub(super) fn recorded_reserve(recording: &Recording) -> Option<u64> {
    let before = &recording.system.as_ref()?.before;
    let text = before.get("proc/sys/vm/min_free_kbytes")?;
    text.trim().parse().ok()
}

/// The reserve of the recorded kernel, if somebody had set it: it is not what follows from the memory that there is
/// (`init_per_zone_wmark_min`).
fn reserve(recording: &Recording) -> Option<(String, String)> {
    let recorded = recorded_reserve(recording)?;
    let before = &recording.system.as_ref()?.before;
    let zones = zoneinfo::parse(before.get("proc/zoneinfo")?);
    let managed: u64 = zones.iter().map(|zone| zone.managed).sum();
    let usual = (managed * (PAGE_SIZE >> 10) * 16).isqrt();
    // What booting alone needs is not managed yet when the kernel computes it.
    let is_usual = recorded.abs_diff(usual) * 8 <= usual;
    (!is_usual).then(|| ("min_free_kbytes".to_owned(), recorded.to_string()))
}

fn is_ram(name: &str) -> bool {
    matches!(name, "ram" | "machine.ram")
}

/// RAM of the zones that a kernel reported, bytes; firmware keeps less than 1 MiB to itself.
fn ram_of_zones(machine: &Machine) -> u64 {
    let present: u64 = machine.zones.iter().map(|zone| zone.present).sum();
    (present * PAGE_SIZE).next_multiple_of(1 << 20)
}

/// The highest zone gets what RAM there would be more, or loses what there would be less, than the zones have.
fn give_ram(machine: &mut Machine, ram: u64) {
    let recorded = ram_of_zones(machine);
    let Some(zone) = machine.zones.last_mut() else {
        return;
    };
    let pages = ram.abs_diff(recorded) / PAGE_SIZE;
    for size in [&mut zone.present, &mut zone.managed] {
        *size = if ram > recorded {
            *size + pages
        } else {
            size.saturating_sub(pages)
        };
    }
}

/// The kernel that ran, without settings: the stable one that a distribution's kernel was built from where that is known.
fn kernel_of(recording: &Recording) -> miette::Result<KernelSpec> {
    let Some(system) = recording.system.as_deref() else {
        let kernel = &recording.run.kernel;
        return KernelSpec::parse(kernel)
            .into_diagnostic()
            .wrap_err_with(|| format!("the recording's kernel {kernel}"));
    };
    let version = guests::stable_of_release(&system.release).ok_or_else(|| {
        miette!(
            help = "the model has kernels from 2.6.36 to 6.18",
            "the recording's kernel: expected a release such as 6.18.15, found {}",
            system.release
        )
    })?;
    let mut spec = KernelSpec::parse(&version).into_diagnostic()?;
    spec.text = guests::of_release(&system.release);
    Ok(spec)
}

/// What the recording's run had set of its machine, of all that was set; of the model, settings of the kernel as well, which a real
/// kernel tells itself.
fn machine_settings(recording: &Recording, machine: &str, kernel: &str) -> Vec<(String, String)> {
    let params = recording.run.params.iter().cloned();
    params
        .filter(|param| scenario(machine, kernel, std::slice::from_ref(param)).is_ok())
        .filter(|(name, _)| {
            let is_setting = lowmark_spec::kernel::SYSCTLS.contains(&of_setting(name));
            !is_setting || recording.system.is_none()
        })
        .collect()
}

/// A load on a machine with what is set: for the machine and the settings that are read from it.
fn scenario(machine: &str, kernel: &str, set: &[(String, String)]) -> miette::Result<Scenario> {
    let load = Candidate {
        kind: Kind::Private,
        order: Order::Forward,
        access: Access::Write,
        pages: 1,
        touches: 0,
    };
    let source = Source {
        name: "the recorded load".to_owned(),
        text: load.text(ANY_MACHINE, kernel),
    };
    let overrides = Overrides {
        machine: Some(machine.to_owned()),
        kernels: vec![kernel.to_owned()],
        set: set.to_vec(),
        seed: None,
    };
    let mut scenarios = plan::parsed(&source, &CommandLine, &overrides, Backend::Model)?;
    scenarios
        .pop()
        .ok_or_else(|| miette!("the recorded load: expected a scenario, found none"))
}

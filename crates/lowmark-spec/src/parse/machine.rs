//! Machines: a file under `machines/`, or the `[machine]` section of a workload.
//!
//! 1. The base is an empty machine, or the one that `use` names.
//! 2. Scalar fields replace those of the base; `node`s follow from `ram` or `nodes`.
//! 3. Devices and file systems of the same name replace the base's, others are added; a `swap` replaces
//!    all swap areas.
//! 4. The whole is checked: every device exists, areas fit and do not overlap.

use std::collections::BTreeSet;

use crate::kernel::version_name;
use crate::machine::{
    Arch, Costs, Device, FileSystem, FsKind, Machine, Node as NumaNode, PAGE_SIZE, SwapArea,
};

use super::device;
use super::error::{Problem, Result};
use super::fields::{Fields, unknown_key};
use super::fitted;
use super::scope::{Scope, identifier};
use super::source::Span;
use super::suggest;
use super::tree::{Entry, Node, Value};
use super::zones;

/// Fields of `[machine]` that hold one value: those that `--set machine.NAME` can change.
pub(crate) const SCALARS: [&str; 9] = [
    "description",
    "arch",
    "ram",
    "cpus",
    "reserved",
    "initmem",
    "occupied",
    "hz",
    "thp",
];
/// Parts of a machine: sections of a machine file, keys of `[machine]` in a workload.
const PARTS: [&str; 8] = [
    "device",
    "swap",
    "filesystem",
    "zone",
    "costs",
    "kernel_costs",
    "sources",
    "fitted",
];

/// Where the description of a machine stands.
#[derive(Clone, Copy)]
pub(crate) struct Description<'t> {
    /// The `[machine]` section.
    pub(crate) machine: &'t Entry,
    /// The table that holds the parts: the root of a machine file, or `[machine]` itself.
    pub(crate) parts: &'t Node,
    /// Whether this is a machine file, which must name its sources.
    pub(crate) file: bool,
}

/// Reads a description on top of `base`.
pub(crate) fn read(
    description: Description<'_>,
    base: Option<Machine>,
    name: &str,
    scope: &Scope<'_>,
) -> Result<Machine> {
    let Description {
        machine: Entry { key_span, node, .. },
        parts,
        file,
    } = description;
    let mut keys: Vec<&str> = SCALARS.iter().copied().chain(["nodes"]).collect();
    if file {
        // A machine file keeps its parts outside of [machine].
        let sections: Vec<&str> = PARTS
            .iter()
            .copied()
            .chain(["lowmark", "machine"])
            .collect();
        if let Some(entry) = parts
            .entries("sections")?
            .iter()
            .find(|entry| !sections.contains(&entry.key.as_str()))
        {
            return Err(unknown_key(entry, "a machine file", &sections));
        }
    } else {
        keys.extend(PARTS.iter().copied().chain(["use"]));
    }
    let fields = Fields::open(node, *key_span, "[machine]", &keys, scope)?;
    let fresh = base.is_none();
    let mut machine = base.unwrap_or_else(|| Machine {
        name: name.to_owned(),
        nodes: Vec::new(),
        devices: Vec::new(),
        swap: Vec::new(),
        ..Machine::small(0, 0)
    });
    scalars(&fields, &mut machine, fresh)?;
    device::read_all(parts, &mut machine, scope)?;
    filesystems(parts, &mut machine, scope)?;
    if let Some(swap) = parts.get("swap") {
        machine.swap = swap_areas(swap, &machine.devices, scope)?;
    }
    if let Some(zones) = parts.get("zone") {
        let rams: Vec<u64> = machine.nodes.iter().map(|node| node.ram).collect();
        machine.zones = zones::read(zones, &rams, scope)?;
    }
    if let Some(costs) = parts.get("costs") {
        read_costs(costs, "[costs]", &mut machine.costs, scope)?;
        // What is said of all kernels holds for those that are named in the base, too.
        for others in machine.kernel_costs.values_mut() {
            read_costs(costs, "[costs]", others, scope)?;
        }
    }
    kernel_costs(parts, &mut machine, scope)?;
    fitted::read(parts, node, &mut machine)?;
    let cited = sources(parts, &mut machine)?;
    if file {
        every_source_cited(parts, &cited)?;
    }
    check_memory(&machine, *key_span)?;
    Ok(machine)
}

fn scalars(fields: &Fields<'_, '_>, machine: &mut Machine, fresh: bool) -> Result<()> {
    const ARCHES: [(&str, Arch); 3] = [
        ("x86-64", Arch::X86_64),
        ("x86-32", Arch::X86_32),
        ("ppc64", Arch::Ppc64),
    ];
    const RAM_MIN: u64 = 1 << 20;
    const NODES_MAX: usize = 64;
    fields.either("ram", "nodes")?;
    let ram = |scope: &Scope<'_>, node: &Node| {
        let bytes = scope.size(node)?;
        if bytes >= RAM_MIN {
            let ram = scope.page_offset(node)?;
            return Ok(NumaNode { ram });
        }
        let message = format!("expected at least 1 MiB of RAM, found {bytes} bytes");
        Err(Problem::new(
            node.span,
            message,
            "write a size with its unit, such as \"900M\"",
        ))
    };
    if let Some(node) = fields.maybe("ram", ram)? {
        (machine.nodes, machine.zones) = (vec![node], Vec::new());
    }
    if let Some(node) = fields.node("nodes") {
        let nodes = node.elements("the RAM of each node")?;
        if nodes.is_empty() || nodes.len() > NODES_MAX {
            let message = format!("expected 1 to {NODES_MAX} nodes, found {}", nodes.len());
            return Err(Problem::new(
                node.span,
                message,
                "write nodes = [\"32G\", \"32G\"]",
            ));
        }
        machine.nodes = nodes
            .iter()
            .map(|node| ram(fields.scope, node))
            .collect::<Result<_>>()?;
    }
    if machine.nodes.is_empty() {
        return Err(fields.missing("ram", "ram = \"900M\", or nodes = [\"32G\", \"32G\"]"));
    }
    machine.description = fields.or("description", Scope::text, machine.description.clone())?;
    machine.arch = fields.or(
        "arch",
        |scope, node| scope.choice(node, "an architecture", &ARCHES),
        machine.arch,
    )?;
    machine.cpus = fields.or(
        "cpus",
        |scope, node| scope.some_up_to(node, 4096),
        machine.cpus,
    )?;
    machine.reserved = fields.or("reserved", Scope::page_offset, machine.reserved)?;
    machine.initmem = fields.or("initmem", Scope::page_offset, machine.initmem)?;
    machine.occupied = fields.or("occupied", Scope::page_offset, machine.occupied)?;
    machine.hz = fields.or(
        "hz",
        |scope, node| scope.some_up_to(node, 10_000),
        machine.hz,
    )?;
    machine.thp = fields.or("thp", Scope::flag, machine.thp)?;
    if fresh {
        fields.need_node("cpus", "cpus = 2")?;
    }
    Ok(())
}

fn check_memory(machine: &Machine, span: Span) -> Result<()> {
    let first = machine.nodes.first().map_or(0, |node| node.ram);
    let total = machine
        .nodes
        .iter()
        .try_fold(0_u64, |sum, node| sum.checked_add(node.ram));
    let taken = machine.reserved.checked_add(machine.occupied);
    let at_boot = machine.reserved.checked_add(machine.initmem);
    match (total, taken, at_boot) {
        (Some(total), Some(taken), Some(at_boot)) if taken < total && at_boot < first => Ok(()),
        _ => Err(Problem::new(
            span,
            format!(
                "expected `reserved` ({}), `initmem` ({}) and `occupied` ({}) to leave some RAM of node 0 \
                 ({first} bytes)",
                machine.reserved, machine.initmem, machine.occupied
            ),
            "lower `reserved`, `initmem` or `occupied`, or give the machine more RAM",
        )),
    }
}

/// The named tables of a section such as `[device.NAME]`.
pub(super) fn named<'t>(parts: &'t Node, section: &str) -> Result<&'t [Entry]> {
    let Some(node) = parts.get(section) else {
        return Ok(&[]);
    };
    let entries = node.entries(&format!("one table for each {section}"))?;
    for entry in entries {
        identifier(&entry.key, entry.key_span, &format!("a {section}"))?;
    }
    Ok(entries)
}

/// Replaces the item of the same name, or adds it.
pub(super) fn put<T>(items: &mut Vec<T>, item: T, same: impl Fn(&T) -> bool) {
    match items.iter_mut().find(|other| same(other)) {
        Some(other) => *other = item,
        None => items.push(item),
    }
}

fn filesystems(parts: &Node, machine: &mut Machine, scope: &Scope<'_>) -> Result<()> {
    const KINDS: [(&str, FsKind); 3] = [
        ("xfs", FsKind::Xfs),
        ("ext4", FsKind::Ext4),
        ("tmpfs", FsKind::Tmpfs),
    ];
    for entry in named(parts, "filesystem")? {
        let owner = format!("the file system `{}`", entry.key);
        let fields = Fields::open(
            &entry.node,
            entry.key_span,
            &owner,
            &["kind", "device"],
            scope,
        )?;
        let kind = fields.need(
            "kind",
            "kind = \"xfs\", \"ext4\" or \"tmpfs\"",
            |scope, node| scope.choice(node, "a kind of file system", &KINDS),
        )?;
        let device = if kind == FsKind::Tmpfs {
            fields.refuse("device", "but tmpfs lives in memory", "remove `device`")?;
            None
        } else {
            let index =
                |scope: &Scope<'_>, node: &Node| device::index(scope, node, &machine.devices);
            Some(fields.need("device", "device = \"sda\"", index)?)
        };
        let filesystem = FileSystem {
            name: entry.key.clone(),
            kind,
            device,
        };
        put(&mut machine.filesystems, filesystem, |other| {
            other.name == entry.key
        });
    }
    Ok(())
}

fn swap_areas(node: &Node, devices: &[Device], scope: &Scope<'_>) -> Result<Vec<SwapArea>> {
    const AREAS_MAX: usize = 32;
    let one = std::slice::from_ref(node);
    let nodes = if let Value::Array(nodes) = &node.value {
        nodes
    } else {
        one
    };
    if nodes.len() > AREAS_MAX {
        let message = format!(
            "expected at most {AREAS_MAX} swap areas, found {}",
            nodes.len()
        );
        return Err(Problem::new(
            node.span,
            message,
            "the kernel has room for no more",
        ));
    }
    let mut areas: Vec<SwapArea> = Vec::with_capacity(nodes.len());
    let mut automatic = 0;
    for node in nodes {
        let area = swap_area(node, devices, scope, &mut automatic)?;
        let end = area.start + area.size;
        if areas.iter().any(|other| {
            other.device == area.device
                && other.start < end
                && area.start < other.start + other.size
        }) {
            return Err(Problem::new(
                node.span,
                "expected swap areas side by side, found one that overlaps an earlier one",
                "give it another `start` or another `device`",
            ));
        }
        areas.push(area);
    }
    Ok(areas)
}

fn swap_area(
    node: &Node,
    devices: &[Device],
    scope: &Scope<'_>,
    automatic: &mut i32,
) -> Result<SwapArea> {
    const SIZE_MIN: u64 = 10 * PAGE_SIZE;
    const KEYS: [&str; 4] = ["device", "start", "size", "priority"];
    let fields = Fields::open(node, node.span, "a swap area", &KEYS, scope)?;
    let device = fields.need("device", "device = \"sda\"", |scope, node| {
        device::index(scope, node, devices)
    })?;
    if devices
        .get(device)
        .is_some_and(|device| device.server.is_some())
    {
        let span = fields
            .node("device")
            .map_or(node.span, |device| device.span);
        return Err(Problem::new(
            span,
            "expected a device of the machine itself, found one in a server",
            "swap to a disk of its own: the model does not swap over a network",
        ));
    }
    let start = fields.or("start", Scope::page_offset, 0)?;
    let size = fields.need("size", "size = \"1G\"", Scope::page_offset)?;
    let span = fields.node("size").map_or(node.span, |size| size.span);
    if size < SIZE_MIN {
        return Err(Problem::new(
            span,
            format!("expected a swap area of at least 10 pages, found {size} bytes"),
            "swapon(8) refuses anything smaller",
        ));
    }
    let device_size = devices.get(device).map_or(0, |device| device.size);
    if start.checked_add(size).is_none_or(|end| end > device_size) {
        return Err(Problem::new(
            span,
            format!(
                "expected a swap area within the device's {device_size} bytes, found {start} + {size}"
            ),
            "lower `start` or `size`, or use a larger device",
        ));
    }
    let priority = match fields.maybe("priority", priority)? {
        Some(priority) => priority,
        None => {
            *automatic -= 1;
            *automatic
        }
    };
    Ok(SwapArea {
        device,
        start,
        size,
        priority,
    })
}

/// The priority of a swap area, as `swapon -p` takes it.
fn priority(scope: &Scope<'_>, node: &Node) -> Result<i32> {
    let value = scope.count(node)?;
    i32::try_from(value)
        .ok()
        .filter(|&priority| priority <= 32_767)
        .ok_or_else(|| {
            let message = format!("expected a priority from 0 to 32767, found {value}");
            Problem::new(
                node.span,
                message,
                "leave it out for the kernel's own -1, -2, …",
            )
        })
}

/// `[kernel_costs."v6.1"]`: what costs something else than `[costs]` says under a kernel.
fn kernel_costs(parts: &Node, machine: &mut Machine, scope: &Scope<'_>) -> Result<()> {
    const SECTION: &str = "kernel_costs";
    let Some(node) = parts.get(SECTION) else {
        return Ok(());
    };
    for Entry {
        key,
        key_span,
        node,
    } in node.entries("one table for each kernel")?
    {
        let Some(version) = version_name(key) else {
            return Err(Problem::new(
                *key_span,
                format!("expected the version of a kernel, found \"{key}\""),
                "write it as in `[kernel]`, such as [kernel_costs.\"v6.1\"]",
            ));
        };
        let known = machine.kernel_costs.get(&version);
        let mut costs = known.unwrap_or(&machine.costs).clone();
        read_costs(node, &format!("[{SECTION}.\"{key}\"]"), &mut costs, scope)?;
        machine.kernel_costs.insert(version, costs);
    }
    Ok(())
}

fn read_costs(node: &Node, section: &str, costs: &mut Costs, scope: &Scope<'_>) -> Result<()> {
    let slots: [(&str, &mut u64); 21] = [
        ("touch", &mut costs.touch_ns),
        ("minor_fault", &mut costs.minor_fault_ns),
        ("major_fault", &mut costs.major_fault_ns),
        ("zero_page", &mut costs.zero_page_ns),
        ("swap_page", &mut costs.swap_page_ns),
        ("swap_in", &mut costs.swap_in_ns),
        ("swap_map", &mut costs.swap_map_ns),
        ("migrate_page", &mut costs.migrate_page_ns),
        ("scan_page", &mut costs.scan_page_ns),
        ("context_switch", &mut costs.context_switch_ns),
        ("switch_mm", &mut costs.switch_mm_ns),
        ("copy_page", &mut costs.copy_page_ns),
        ("file_page", &mut costs.file_page_ns),
        ("folio_page", &mut costs.folio_page_ns),
        ("request", &mut costs.request_ns),
        ("balance_dirty", &mut costs.balance_dirty_ns),
        ("list_lock", &mut costs.list_lock_ns),
        ("move_inode", &mut costs.move_inode_ns),
        ("create", &mut costs.create_ns),
        ("write_inode", &mut costs.write_inode_ns),
        ("syscall", &mut costs.syscall_ns),
    ];
    let keys: Vec<&str> = slots.iter().map(|(key, _)| *key).collect();
    let fields = Fields::open(node, node.span, section, &keys, scope)?;
    for (key, slot) in slots {
        *slot = fields.or(key, Scope::work, *slot)?;
    }
    // Whoever does not tell the two apart means both.
    let said = |key| fields.maybe(key, Scope::work);
    if let (Some(both), None) = (said("swap_page")?, said("swap_in")?) {
        costs.swap_in_ns = both;
    }
    Ok(())
}

/// Reads `[sources]` into the description and gives the names that are cited, such as `device.sda`.
fn sources(parts: &Node, machine: &mut Machine) -> Result<BTreeSet<String>> {
    let mut cited = BTreeSet::new();
    let Some(node) = parts.get("sources") else {
        return Ok(cited);
    };
    let mut known: Vec<String> = SCALARS
        .iter()
        .chain(&["nodes", "swap", "zone", "costs", "kernel_costs"])
        .map(|&name| name.to_owned())
        .collect();
    known.extend(
        machine
            .devices
            .iter()
            .map(|device| format!("device.{}", device.name)),
    );
    known.extend(
        machine
            .filesystems
            .iter()
            .map(|fs| format!("filesystem.{}", fs.name)),
    );
    let mut texts = Vec::new();
    flatten(node, "", &mut texts)?;
    for (name, span, text) in texts {
        if text.trim().is_empty() {
            let message = format!("expected where `{name}` comes from, found an empty text");
            return Err(Problem::new(
                span,
                message,
                "cite a mail, a data sheet or a measurement",
            ));
        }
        // `device.sda.page` is about `device.sda`.
        let about = known.iter().find(|&known| {
            name.strip_prefix(known.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        let Some(about) = about else {
            return Err(Problem::new(
                span,
                format!("found a source for `{name}`, which the machine does not have"),
                suggest::help(&name, known.iter().map(String::as_str)),
            ));
        };
        cited.insert(about.clone());
        machine
            .description
            .push_str(&format!("\n{name}: {}", text.trim()));
    }
    Ok(cited)
}

/// Strings of nested tables with their dotted names.
fn flatten<'t>(
    node: &'t Node,
    prefix: &str,
    texts: &mut Vec<(String, Span, &'t str)>,
) -> Result<()> {
    for entry in node.entries("one text for each figure")? {
        let name = format!("{prefix}{}", entry.key);
        match &entry.node.value {
            Value::Text(text) => texts.push((name, entry.node.span, text)),
            _ => flatten(&entry.node, &format!("{name}."), texts)?,
        }
    }
    Ok(())
}

fn every_source_cited(parts: &Node, cited: &BTreeSet<String>) -> Result<()> {
    let costs = parts
        .entries("sections")?
        .iter()
        .filter(|entry| ["costs", "kernel_costs"].contains(&entry.key.as_str()));
    let costs = costs.map(|entry| (entry.key.clone(), entry.key_span));
    let devices = named(parts, "device")?.iter();
    let devices = devices.map(|entry| (format!("device.{}", entry.key), entry.key_span));
    for (name, span) in costs.chain(devices) {
        if !cited.contains(&name) {
            return Err(Problem::new(
                span,
                format!("expected a source for `{name}`, found none"),
                format!("add to [sources]: {name} = \"where the figures come from\""),
            ));
        }
    }
    Ok(())
}

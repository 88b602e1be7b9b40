//! A machine that is written as a machine file is read back as it was.

use lowmark_spec::machine::{
    Arch, Atime, Costs, Device, DeviceKind, Driver, Elevator, FileSystem, FsKind, Machine, Node,
    PAGE_SIZE, Pageblocks, Server, SwapArea, WriteErrors, Zone, ZoneKind,
};
use lowmark_spec::random::Stream;
use lowmark_spec::{BuiltIn, Library, Overrides, Source, parse, parse_machine, write_machine};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What is cited for that of which a machine says nothing itself.
const SOURCE: &str = "a test, 100 % \"made\" \\ up at $5";

fn read(name: &str, text: &str) -> Machine {
    let source = Source {
        name: format!("{name}.toml"),
        text: text.to_owned(),
    };
    parse_machine(&source).unwrap_or_else(|error| panic!("{}\n{text}", error.render_plain()))
}

/// The machine as its file describes it.
fn written_and_read(machine: &Machine) -> Machine {
    read(&machine.name, &write_machine(machine, SOURCE))
}

#[test]
fn built_in_machines_are_read_back() {
    for name in BuiltIn.machines() {
        let source = BuiltIn.machine(&name).expect("it is listed");
        let machine = read(&name, &source.text);
        let text = write_machine(&machine, SOURCE);
        assert_eq!(read(&name, &text), machine, "{text}");
        // They cite all of their sources themselves.
        assert!(!text.contains("a test"), "{text}");
    }
}

/// Machines that workloads describe cite no sources, so their files get some.
#[test]
fn machines_of_workloads_are_read_back() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
    let mut compared = 0;
    for entry in std::fs::read_dir(directory).expect("the directory exists") {
        let path = entry.expect("readable").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let source = Source::read(&path).expect("readable");
        let scenarios = parse(&source, &BuiltIn, &Overrides::default());
        for mut scenario in scenarios.unwrap_or_else(|error| panic!("{}", error.render_plain())) {
            let machine = &mut scenario.machine;
            let read = written_and_read(machine);
            assert!(read.description.starts_with(&machine.description));
            machine.description = read.description.clone();
            assert_eq!(&read, machine);
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn a_file_is_readable_and_says_no_more_than_it_must() {
    let mut machine = Machine::small(1536 << 20, 1 << 30);
    machine.nodes = vec![Node { ram: 1536 << 20 }, Node { ram: 4 << 30 }];
    machine.description = "costs $5".into();
    machine.description += "\nby \"request\"\ncosts: an estimate\ndevice.sda.page: a data sheet";
    machine.reserved = 49_536 << 10;
    machine.devices[0].command_read_ns = 117_737;
    machine.devices[0].max_segments = 254;
    machine.devices[0].driver = Some(Driver::VirtioBlk);
    machine.devices.push(Device {
        server: Some(Server {
            round_trip_ns: 300_000,
            page_ns: 35_000,
            slots: 16,
            wsize: 512 << 10,
            threads: 8,
            ram: 8 << 30,
        }),
        ..Device::hdd("nas", 500_000_000_000)
    });
    machine.costs.swap_page_ns = 2_300;
    machine.costs.swap_in_ns = 2_300;
    machine.costs.swap_huge_page_ns = 230_000;
    machine.costs.request_ns = 66_769;
    let dearer = Costs {
        request_ns: 70_000,
        ..machine.costs.clone()
    };
    machine.kernel_costs.insert("v6.1".into(), dearer);
    let targets = vec!["table::row".to_owned()];
    machine.fitted.insert("thp".into(), targets);
    let expected = r#"lowmark = 1

[machine]
description = """
costs $$5
by "request""""
cpus = 1
reserved = "49536K"
thp = false
nodes = ["1.5G", "4G"]

[device.sda]
kind = "ssd"
size = "2G"
position_read = "100us"
position_write = "0ns"
command_read = "117737ns"
command_write = "20us"
page = "8192ns"
max_segments = 254
driver = "virtio-blk"

[device.nas]
kind = "hdd"
size = "500GB"
position_read = "7.6ms"
position_write = "3.8ms"
command_read = "62us"
command_write = "0ns"
page = "42us"
skip_pages = 64
read_ahead = "1M"
server = { round_trip = "300us", page = "35us", wsize = "512K", ram = "8G" }

[[swap]]
device = "sda"
size = "1G"

[costs]
swap_page = "2.3us"
request = "66769ns"

[kernel_costs."v6.1"]
request = "70us"

[sources]
costs = "an estimate"
"device.sda.page" = "a data sheet"
"device.nas" = "a guess"
kernel_costs = "a guess"

[fitted]
thp = ["table::row"]
"#;
    assert_eq!(write_machine(&machine, "a guess"), expected);
}

/// Constants that were fitted are found in the file under the names that they have.
#[test]
fn fitted_constants_stand_in_the_file() {
    let text = r#"
        lowmark = 1
        [machine]
        nodes = ["1G"]
        cpus = 1
        hz = 250
        [device.sda]
        kind = "ssd"
        size = "1G"
        position_read = "0s"
        position_write = "0s"
        command_read = "0s"
        command_write = "0s"
        rate = "96.5MB/s"
        rate_write = "96501337B/s"
        write_errors = { every = 1 }
        [device.nas]
        kind = "hdd"
        size = "1G"
        position_read = "0s"
        position_write = "0s"
        command_read = "0s"
        command_write = "0s"
        rate = "9TB/s"
        server = { round_trip = "0s", rate = "117MB/s", slots = 16, ram = "1G" }
        [swap]
        device = "sda"
        start = 0
        size = "1G"
        [zone]
        kind = "DMA32"
        present = "1000p"
        managed = "900p"
        initmem = 0
        [costs]
        [sources]
        costs = "a test"
        device.sda = "a test"
        device.nas = "a test"
        [fitted]
        nodes = ["a::b"]
        machine.hz = ["a::b"]
        swap.start = ["a::b"]
        zone.initmem = ["a::b"]
        costs = ["a::b"]
        device.sda.rate = ["a::b", "a::c::d"]
        device.sda.rate_write = ["a::b"]
        device.sda.write_errors.every = ["a::b"]
        device.nas.rate = ["a::b"]
        device.nas.server.rate = ["a::b"]
        device.nas.server.slots = ["a::b"]
    "#;
    let machine = read("m", text);
    assert_eq!(machine.fitted.len(), 11);
    assert_eq!(written_and_read(&machine), machine);
}

/// Makes machines that follow from a seed. Each figure of one is its default or another value, whatever the others are.
struct Maker {
    stream: Stream,
}

impl Maker {
    fn below(&mut self, n: u64) -> u64 {
        self.stream.below(n)
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }

    /// `default`, or a number from 1 to `most`: round ones are as likely as others.
    fn count(&mut self, default: u64, most: u64) -> u64 {
        let rough = 1 + self.below(most);
        self.pick(&[default, rough, rough.next_power_of_two().min(most)])
    }

    fn small(&mut self, default: u32, most: u32) -> u32 {
        u32::try_from(self.count(default.into(), most.into())).expect("at most `most`")
    }

    fn pages(&mut self, default: u64, most: u64) -> u64 {
        self.count(default / PAGE_SIZE, most) * PAGE_SIZE
    }

    fn time(&mut self, default: u64) -> u64 {
        let rough = self.below(60_000_000);
        let round = [100, 10_000, 1_000_000].map(|unit| rough / unit * unit);
        self.pick(&[default, rough, round[0], round[1], round[2]])
    }

    fn machine(&mut self) -> Machine {
        let nodes = 1 + self.below(2);
        let mut machine = Machine {
            buffers: 0,
            name: "made".into(),
            description: self
                .pick(&["", "one line", "two\nlines: $a", "tab\tand\\"])
                .into(),
            arch: self.pick(&[Arch::X86_64, Arch::X86_32, Arch::Ppc64]),
            nodes: (0..nodes)
                .map(|_| Node {
                    ram: (64 << 20) + self.pages(0, 1 << 20),
                })
                .collect(),
            cpus: self.small(1, 4096),
            memory_streams: self.small(4096, 4096),
            reserved: self.pages(0, 1000),
            initmem: self.pages(0, 1000),
            occupied: self.pages(0, 1000),
            zones: Vec::new(),
            hz: self.small(250, 10_000),
            thp: self.coin(),
            devices: Vec::new(),
            swap: Vec::new(),
            filesystems: Vec::new(),
            costs: self.costs(&Costs::default()),
            kernel_costs: BTreeMap::new(),
            fitted: BTreeMap::new(),
        };
        for number in 0..self.below(4) {
            let device = self.device(format!("disk-{number}"));
            let name = format!("device.{}", device.name);
            machine.description += &format!("\n{name}.size: a guess\non two lines");
            machine.devices.push(device);
            let device = Some(number as usize);
            let kinds = [
                (FsKind::Xfs, device),
                (FsKind::Ext4, device),
                (FsKind::Tmpfs, None),
            ];
            let (kind, device) = self.pick(&kinds);
            machine.filesystems.push(FileSystem {
                name: format!("{number}"),
                kind,
                device,
                atime: self.pick(&[Atime::Relatime, Atime::Noatime]),
                inode_ratio: 1 << (10 + self.below(12)),
            });
        }
        if self.coin() {
            machine.zones = self.zones(&machine.nodes);
        }
        machine.swap = self.swap(&machine.devices);
        machine.description += "\ncosts: \"estimates\"\nkernel_costs: the same";
        for version in ["v6.1", "v6.12-rc3"] {
            if self.coin() {
                let costs = self.costs(&machine.costs);
                machine.kernel_costs.insert(version.into(), costs);
            }
        }
        if self.coin() {
            let targets = vec!["a::b".to_owned(), "a::b::c \"d\"::e".to_owned()];
            machine.fitted.insert("occupied".into(), targets);
        }
        machine
    }

    /// Costs, of which some differ from `from`; the names are those of the struct, so none is forgotten.
    fn costs(&mut self, from: &Costs) -> Costs {
        let mut table = toml::Table::try_from(from).expect("a table of numbers");
        for (_, ns) in &mut table {
            let default = ns.as_integer().and_then(|ns| u64::try_from(ns).ok());
            let time = self.time(default.expect("a time"));
            *ns = toml::Value::Integer(time.try_into().expect("a minute at most"));
        }
        table.try_into().expect("the same names")
    }

    /// Every field is named, so that a new one cannot be forgotten.
    fn device(&mut self, name: String) -> Device {
        let kind = self.pick(&[DeviceKind::Hdd, DeviceKind::Ssd]);
        let base = Device::bare(&name, kind);
        let server = (self.below(4) == 0).then(|| self.server());
        let local = server.is_none();
        let members = if local { self.small(1, 64) } else { 1 };
        let erase_block = self.pages(0, 4096);
        let page_ns = self.time(0);
        let min_ratio = self.count(0, 20);
        let drivers = [None, Some(Driver::VirtioBlk), Some(Driver::Nvme)];
        let driver = if local { self.pick(&drivers) } else { None };
        let hardware_queues = match driver {
            Some(_) => self.small(1, 65_536),
            None => 1,
        };
        let elevators = [Elevator::Noop, Elevator::Deadline, Elevator::Cfq];
        let mut local_count = |default| {
            if local {
                self.small(default, 65_536)
            } else {
                default
            }
        };
        let queue_depth = local_count(base.queue_depth);
        let parallelism = local_count(base.parallelism);
        let nr_requests = local_count(base.nr_requests);
        Device {
            name,
            kind,
            rotational: self.coin(),
            size: (1 << 30) + self.count(0, 1 << 40),
            position_read_ns: self.time(0),
            position_write_ns: self.time(0),
            command_read_ns: self.time(0),
            command_write_ns: self.time(0),
            page_ns,
            page_write_ns: self.time(page_ns),
            skip_pages: self.count(0, 1000),
            read_ahead: self.pages(0, 1000),
            erase_block,
            open_blocks: if erase_block > 0 {
                self.small(1, 64)
            } else {
                1
            },
            queue_depth,
            parallelism,
            max_request: self.coin().then(|| self.pages(0, 1000).max(PAGE_SIZE)),
            max_segments: self.small(base.max_segments, 254),
            driver,
            hardware_queues,
            nr_requests,
            elevator: if local {
                self.pick(&elevators)
            } else {
                base.elevator
            },
            members,
            chunk: if members > 1 {
                self.pages(base.chunk, 1000)
            } else {
                base.chunk
            },
            min_ratio,
            max_ratio: self.count(100, 80).max(min_ratio),
            strictlimit: self.coin(),
            written_share: self.count(0, 100),
            write_errors: (local && members == 1 && self.coin()).then(|| self.write_errors()),
            server,
        }
    }

    fn server(&mut self) -> Server {
        Server {
            round_trip_ns: self.time(0),
            page_ns: self.time(0),
            slots: self.small(16, 65_536),
            wsize: self.pages(1 << 20, 1000),
            threads: self.small(8, 4096),
            ram: self.count(1 << 30, 1 << 40),
        }
    }

    fn write_errors(&mut self) -> WriteErrors {
        let size = self.pages(0, 1000).max(PAGE_SIZE);
        let count = self.count(1, 1000);
        WriteErrors {
            start: self.pages(0, 1000),
            size: self.pick(&[u64::MAX, size]),
            after: self.count(0, 1 << 30),
            every: self.count(1, 1000),
            count: self.pick(&[u64::MAX, count]),
        }
    }

    /// Areas side by side on the devices that can have them. What no priority is given to has one of the kernel's.
    fn swap(&mut self, devices: &[Device]) -> Vec<SwapArea> {
        let mut areas = Vec::new();
        let mut automatic = 0;
        for (device, _) in devices
            .iter()
            .enumerate()
            .filter(|(_, d)| d.server.is_none())
        {
            let mut start = 0;
            for _ in 0..self.below(3) {
                start += self.pages(0, 1000);
                let size = 10 * PAGE_SIZE + self.pages(0, 1000);
                let given = i32::try_from(self.below(32_768)).expect("it fits");
                let priority = if self.coin() {
                    given
                } else {
                    automatic -= 1;
                    automatic
                };
                areas.push(SwapArea {
                    device,
                    start,
                    size,
                    priority,
                    file: self.coin(),
                });
                start += size;
            }
        }
        areas
    }

    fn pageblocks(&mut self) -> Pageblocks {
        Pageblocks {
            count: self.below(2),
            free: std::array::from_fn(|_| self.below(2)),
        }
    }

    fn zones(&mut self, nodes: &[Node]) -> Vec<Zone> {
        let mut zones = Vec::new();
        for node in 0..nodes.len() {
            let all = [
                ZoneKind::Dma,
                ZoneKind::Dma32,
                ZoneKind::Normal,
                ZoneKind::HighMem,
            ];
            let first = self.below(4) as usize;
            for kind in &all[first..] {
                let present = 1024 + self.below(3072);
                let managed = 512 + self.below(512);
                zones.push(Zone {
                    node,
                    kind: *kind,
                    present,
                    managed,
                    initmem: self.count(0, 512),
                    movable: self.pageblocks(),
                    reclaimable: self.pageblocks(),
                    kept: self.below(500),
                });
            }
        }
        zones
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_machines_are_read_back(seed in any::<u64>()) {
        let stream = Stream::new(seed, "machine", 0);
        let machine = Maker { stream }.machine();
        let text = write_machine(&machine, SOURCE);
        prop_assert_eq!(read("made", &text), machine, "{}", text);
    }
}

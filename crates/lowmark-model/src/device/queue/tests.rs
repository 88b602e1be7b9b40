//! When a device sees a request that a task has submitted.

use super::*;
use crate::ids::DeviceId;
use crate::kernel::Version;

/// Single pages far apart.
pub(in crate::device) fn read(number: u64) -> Io {
    Io {
        device: DeviceId::FIRST,
        dir: Dir::Read,
        sync: true,
        position: 1000 * number,
        pfn: number as Pfn,
        in_folio: false,
        needs_bio: false,
    }
}

/// Requests that a disk has begun or taken after single pages far apart were submitted.
fn at_device(version: &str, pages: u64, unplugs: bool) -> usize {
    let kernel = Kernel::released(Version::known(version).unwrap());
    let mut sched = Sched::new(
        1,
        250,
        crate::time::SwitchCosts::default(),
        kernel.mechanisms.sched,
    );
    sched.add("reader".into(), false);
    sched.next_ready();
    let mut layer = BlockLayer::new(&[Device::hdd("sda", 1 << 30)], &Costs::default(), &kernel);
    for number in 0..pages {
        assert_eq!(layer.submit(&mut sched, read(number)), Submitted::Yes);
    }
    if unplugs {
        layer.unplug_queues(&mut sched);
    }
    let queue = &layer.queues[QueueId::from(0)];
    queue.in_service as usize + queue.taken.len()
}

/// A device has a request once the CPU time of its submission has passed; the second of two requests waits for the
/// CPU time of both.
#[test]
fn a_device_sees_a_request_when_its_submitter_is_through() {
    let kernel = Kernel::released(Version::known("v6.18").unwrap());
    let mut sched = Sched::new(
        1,
        250,
        crate::time::SwitchCosts::default(),
        kernel.mechanisms.sched,
    );
    sched.add("reader".into(), false);
    sched.next_ready();
    // A disk without an elevator: the reader gives it the requests, too.
    let disk = Device {
        elevator: elevator::Kind::Noop,
        ..Device::ssd("sda", 1 << 30)
    };
    let costs = Costs {
        request_ns: 20_000,
        dispatch_ns: 40_000,
        ..Costs::default()
    };
    let mut layer = BlockLayer::new(&[disk], &costs, &kernel);
    for number in 0..2 {
        assert_eq!(layer.submit(&mut sched, read(number)), Submitted::Yes);
    }
    let ready = layer.queues[QueueId::from(0)]
        .requests
        .iter()
        .map(|request| request.ready);
    assert_eq!(ready.collect::<Vec<_>>(), [60_000, 120_000]);
}

#[test]
fn an_empty_queue_waits_for_company_up_to_2_6_38() {
    assert_eq!(at_device("v2.6.38", 3, false), 0);
    assert_eq!(at_device("v2.6.38", 3, true), 3);
    assert_eq!(at_device("v2.6.38", 4, false), 4);
    assert_eq!(at_device("v2.6.39", 1, false), 1);
}

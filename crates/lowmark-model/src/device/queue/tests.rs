//! When a device sees a request that a task has submitted.

use super::*;
use crate::ids::DeviceId;
use crate::kernel::{RequestTags, Version};

/// Single pages far apart.
pub(in crate::device) fn read(number: u64) -> Io {
    Io {
        device: DeviceId::FIRST,
        dir: Dir::Read,
        sync: true,
        position: 1000 * number,
        pfn: number as Pfn,
        in_folio: false,
        own_bio: false,
        needs_bio: false,
    }
}

/// A kernel, with one task that runs.
fn one_task(version: &str) -> (Kernel, Sched) {
    let kernel = Kernel::released(Version::known(version).unwrap());
    let mut sched = Sched::new(
        1,
        250,
        crate::time::SwitchCosts::default(),
        kernel.mechanisms.sched,
    );
    sched.add("reader".into(), false);
    sched.next_ready();
    (kernel, sched)
}

/// Requests that a disk has begun or taken after single pages far apart were submitted.
fn at_device(version: &str, pages: u64, unplugs: bool) -> usize {
    let (kernel, mut sched) = one_task(version);
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
    let (kernel, mut sched) = one_task("v6.18");
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

/// A task with a plug submits groups of pages of swap: pages of a group are neighbours, groups are far apart. How many requests
/// the device has then, and how many pages the largest request.
fn plugged(version: &str, device: Device, groups: u64, pages: u64) -> (usize, usize) {
    let (kernel, mut sched) = one_task(version);
    let mut layer = BlockLayer::new(&[device], &Costs::default(), &kernel);
    layer.start_plug(&sched);
    for group in 0..groups {
        for page in 0..pages {
            let io = Io {
                dir: Dir::Write,
                sync: false,
                position: 1000 * group + page,
                own_bio: true,
                ..read(page)
            };
            assert_eq!(layer.submit(&mut sched, io), Submitted::Yes);
        }
    }
    let queue = &layer.queues[QueueId::from(0)];
    let largest = queue.requests.iter().map(|request| request.pages.len());
    let largest = largest.max().unwrap();
    (queue.in_service as usize + queue.taken.len(), largest)
}

fn disk(driver: Option<Driver>, hardware_queues: u32) -> Device {
    Device {
        driver,
        hardware_queues,
        max_segments: 254,
        ..Device::ssd("sda", 1 << 30)
    }
}

/// What `blk_mq_make_request` of each era keeps of three requests of eight pages: all, none, or the last.
#[test]
fn plugs_hold_what_the_era_lets_them_hold_of_several_queues() {
    let at_device = |version, driver, queues| plugged(version, disk(driver, queues), 3, 8).0;
    let virtio = Some(Driver::VirtioBlk);
    for (version, there) in [
        ("v3.12", 0),
        ("v3.15", 0),
        // There is one virtqueue.
        ("v3.16", 0),
        // Each page goes out before the next one comes, which the device has room for.
        ("v3.18", 24),
        ("v4.1", 24),
        ("v4.2", 2),
        ("v4.20", 2),
        ("v5.0", 0),
    ] {
        assert_eq!(at_device(version, virtio, 4), there, "{version}");
        assert_eq!(at_device(version, virtio, 1), 0, "{version}");
        assert_eq!(at_device(version, None, 1), 0, "{version}");
    }
    // Each of 24 pages is a request; the disk takes 31 at once.
    assert_eq!(at_device("v4.4", Some(Driver::Nvme), 4), 24);
    assert_eq!(at_device("v4.5", Some(Driver::Nvme), 4), 2);
}

#[test]
fn requests_of_4_4_to_disks_behind_no_scsi_have_31_pages() {
    let largest = |version, driver, queues| plugged(version, disk(driver, queues), 1, 200).1;
    for queues in [1, 4] {
        let virtio = Some(Driver::VirtioBlk);
        assert_eq!(largest("v4.3", virtio, queues), 200);
        assert_eq!(largest("v4.4", virtio, queues), 31);
        assert_eq!(largest("v4.5", virtio, queues), 200);
    }
    assert_eq!(largest("v4.4", None, 1), 200);
}

#[test]
fn disks_of_blk_mq_have_no_elevator_and_are_never_congested() {
    let of = |version: &str, driver| {
        let (kernel, _) = one_task(version);
        let device = disk(driver, 1);
        QueueRules::of(&device, kernel.mechanisms.block)
    };
    let virtio = Some(Driver::VirtioBlk);
    let old = of("v3.12", virtio);
    assert_eq!(
        (old.elevator, old.tags),
        (elevator::Kind::Cfq, RequestTags::Classes)
    );
    let new = of("v3.13", virtio);
    assert_eq!(
        (new.elevator, new.tags),
        (elevator::Kind::Noop, RequestTags::QueueBatches)
    );
    assert_eq!(of("v3.13", Some(Driver::Nvme)).tags, RequestTags::Classes);
    assert_eq!(
        of("v3.19", Some(Driver::Nvme)).tags,
        RequestTags::QueueBatches
    );
    assert_eq!(of("v4.11", virtio).elevator, elevator::Kind::Cfq);
    assert_eq!(of("v4.11", None).tags, RequestTags::Classes);
}

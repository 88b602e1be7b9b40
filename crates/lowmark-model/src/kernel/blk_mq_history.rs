//! The changes of which drivers give their requests to blk-mq, and of how many of these a plug holds, as in [`history`](super::history).

use super::change::{Change, v};
use super::mechanisms::*;

/// Every such change, oldest first.
pub(super) const BLK_MQ: &[Change] = &[
    Change {
        name: "virtio-blk-mq",
        version: v(3, 13),
        commit: "1cf7e9c68fe8",
        summary: "requests of virtio disks are blk-mq's: they have no elevator, and none of their queues is congested",
        effect: |m| {
            m.block.blk_mq = BlkMq::Virtio;
        },
    },
    Change {
        name: "several-queues-unplugged",
        version: v(3, 16),
        commit: "07068d5b8ed8",
        summary: "plugs hold no requests of a device with several hardware queues",
        effect: |m| {
            m.block.mq_plug = MqPlug::Nothing;
        },
    },
    Change {
        name: "virtio-queues",
        version: v(3, 17),
        commit: "6a27b656fc02",
        summary: "virtio disks have several hardware queues",
        effect: |m| {
            m.block.blk_mq = BlkMq::VirtioQueues;
        },
    },
    Change {
        name: "nvme-blk-mq",
        version: v(3, 19),
        commit: "a4aea5623d4a",
        summary: "requests of NVMe disks are blk-mq's",
        effect: |m| {
            m.block.blk_mq = BlkMq::Nvme;
        },
    },
    Change {
        name: "one-plugged-request",
        version: v(4, 2),
        commit: "5b3f341f098d",
        summary: "a plug holds one request of each device with several hardware queues",
        effect: |m| {
            m.block.mq_plug = MqPlug::OneRequest;
        },
    },
    Change {
        name: "safe-dev-sectors",
        version: v(4, 4),
        commit: "ca369d51b3e1",
        summary: "requests to disks that are not SCSI's have 255 sectors at most",
        effect: |m| {
            m.block.dev_sectors = DevSectors::Sectors255;
        },
    },
    Change {
        name: "nvme-merges",
        version: v(4, 5),
        commit: "ef2d4615c59e",
        summary: "bios side by side to an NVMe disk are one request",
        effect: |m| {
            m.block.nvme_bios = NvmeBios::Merged;
        },
    },
    Change {
        name: "no-safe-dev-sectors",
        version: v(4, 5),
        commit: "5f009d3f8e66",
        summary: "requests to disks that are not SCSI's are as large as the driver asks for, again",
        effect: |m| {
            m.block.dev_sectors = DevSectors::Driver;
        },
    },
    Change {
        name: "blk-mq-elevators",
        version: v(4, 11),
        commit: "945ffb60c11d",
        summary: "queues of blk-mq may have an elevator",
        effect: |m| {
            m.block.blk_mq = BlkMq::Elevators;
        },
    },
    Change {
        name: "plugs-of-several-queues",
        version: v(5, 0),
        commit: "d666ba98f849",
        summary: "plugs hold requests of virtio and NVMe disks with several hardware queues as those of others",
        effect: |m| {
            m.block.mq_plug = MqPlug::Requests;
        },
    },
];

//! By which rules the block layer takes the requests of a device: limits of its queue, and how many requests a plug holds.
//!
//! Up to 4.20 these rules depend on the device's driver. Requests of SCSI disks are of the old kind; `virtio_blk` and later `nvme`
//! give theirs to blk-mq, whose queues have tags, are never congested, have no elevator up to 4.10, and whose plugs hold fewer
//! requests where the device has several hardware queues. Up to 4.4 the NVMe driver makes a request of every bio, and a plug holds
//! none of these writes. (From 4.2 on a plug holds such reads; the model gives them to the device at once, too.)

use super::elevator;
use crate::kernel::{BlkMq, Block, DevSectors, MqPlug, NvmeBios, RequestTags};
use lowmark_spec::machine::{Device, Driver};

/// `BLK_SAFE_MAX_SECTORS`, bytes.
const SAFE_MAX_BYTES: u64 = 255 << 9;

/// How the requests of a device are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueueRules {
    pub(super) tags: RequestTags,
    pub(super) elevator: elevator::Kind,
    pub(super) plug: MqPlug,
    /// Bios come together in a request.
    pub(super) merges_bios: bool,
    /// Bytes of a request at most (`max_dev_sectors`).
    pub(super) dev_bytes: u64,
}

impl QueueRules {
    pub(super) fn of(device: &Device, block: Block) -> QueueRules {
        let blk_mq = match device.driver {
            Some(Driver::VirtioBlk) => block.blk_mq != BlkMq::Nobody,
            Some(Driver::Nvme) => matches!(block.blk_mq, BlkMq::Nvme | BlkMq::Elevators),
            None => false,
        };
        let several = device.hardware_queues > 1 && block.blk_mq != BlkMq::Virtio;
        let merges_bios =
            device.driver != Some(Driver::Nvme) || block.nvme_bios == NvmeBios::Merged;
        QueueRules {
            tags: match block.request_tags {
                RequestTags::Classes if blk_mq => RequestTags::QueueBatches,
                tags => tags,
            },
            elevator: if blk_mq && block.blk_mq != BlkMq::Elevators {
                elevator::Kind::Noop
            } else {
                device.elevator
            },
            plug: match block.mq_plug {
                _ if !merges_bios => MqPlug::Nothing,
                plug if blk_mq && several => plug,
                _ => MqPlug::Requests,
            },
            merges_bios,
            dev_bytes: match block.dev_sectors {
                DevSectors::Sectors255 if device.driver.is_some() => SAFE_MAX_BYTES,
                DevSectors::Sectors255 | DevSectors::Driver => u64::MAX,
            },
        }
    }
}

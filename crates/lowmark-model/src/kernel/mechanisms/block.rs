//! The block layer: plugs, merging, request tags.

macro_rules! block {
    ($next:ident $($others:ident)*; $($before:tt)*) => {
        $next! { $($others)*;
            $($before)*
            /// The block layer: plugs, merging, request tags.
            block: Block {
                /// Where requests are held back so that neighbours come together (`blk_start_plug`).
                plug: Plug {
                    /// In an empty queue of a disk, until it holds four requests, a task waits for one or 3 ms have passed (before
                    /// 7eaceaccab5f, 2.6.39).
                    Queue = "queue",
                    /// With the task that submits them, between blk_start_plug() and blk_finish_plug().
                    Task = "task",
                }
                /// When a plug is submitted though its holder goes on (`blk_attempt_plug_merge`, `blk_add_rq_to_plug`).
                plug_flush: PlugFlush {
                    /// At 16 requests.
                    Requests = "requests",
                    /// The same, and when there is another request beside one of 128 KiB.
                    LargeRequest = "large-request" needs(block.plug = Plug::Task),
                    /// The same, at 32 requests.
                    MoreRequests = "more-requests" needs(block.plug = Plug::Task),
                    /// The same, but one of 128 KiB counts only if it is the oldest.
                    OldestRequest = "oldest-request" needs(block.plug = Plug::Task),
                }
                /// Which plugged requests of its queue a page is tried with (`blk_attempt_plug_merge`).
                plug_merge: PlugMerge {
                    /// All, the newest first.
                    All = "all",
                    /// The newest.
                    Newest = "newest" needs(block.plug = Plug::Task),
                    /// The oldest, as new ones are added behind it.
                    Oldest = "oldest" needs(block.plug = Plug::Task),
                    /// The last in the plug; if that is of another queue, the oldest.
                    Last = "last" needs(block.plug = Plug::Task),
                }
                /// Which drivers give their requests to blk-mq, while those of SCSI disks have a `struct request_list` and an elevator
                /// of the old kind. Their requests, of all kinds, are as many as the queue has, and no such queue is ever congested.
                blk_mq: BlkMq {
                    /// None.
                    Nobody = "nobody",
                    /// `virtio_blk`, with one hardware queue, which has no elevator.
                    Virtio = "virtio",
                    /// `virtio_blk`, with as many hardware queues as there are, which have no elevator.
                    VirtioQueues = "virtio-queues",
                    /// `virtio_blk` and `nvme`.
                    Nvme = "nvme",
                    /// The same, and the queues have the elevator that they are given.
                    Elevators = "elevators",
                }
                /// How many requests of a device with several hardware queues a task's plug holds
                /// (`blk_mq_make_request`).
                mq_plug: MqPlug {
                    /// As many as of other devices.
                    Requests = "requests",
                    /// None: a request goes to its device at once.
                    Nothing = "nothing" needs(block.plug = Plug::Task),
                    /// One: the request goes to its device when the task submits the next.
                    OneRequest = "one-request" needs(block.plug = Plug::Task),
                }
                /// What becomes of bios side by side that go to an NVMe disk (`QUEUE_FLAG_NOMERGES`).
                nvme_bios: NvmeBios {
                    /// Each is a request of its own. Pages of swap, and those of files that reclaim writes, are a bio each.
                    Own = "own",
                    /// They are one request.
                    Merged = "merged",
                }
                /// Largest request to a device whose driver is not that of SCSI disks, where the driver asks for more
                /// (`max_dev_sectors`).
                dev_sectors: DevSectors {
                    /// As large as the driver asks for.
                    Driver = "driver",
                    /// 255 sectors, 31 pages: the default of a limit that only SCSI disks set.
                    Sectors255 = "255",
                }
                /// Requests that a queue may have under way, and which sleepers wake when one is done.
                request_tags: RequestTags {
                    /// Async and sync requests are counted apart; each request that is done wakes one sleeper.
                    Classes = "classes",
                    /// Both share the tags (blk-mq); the sleepers of one of eight wait queues, when it has counted eight.
                    /// No queue is ever congested, so that a congestion wait always takes its full timeout.
                    QueueBatches = "queue-batches",
                    /// The same, but eight of all sleepers for eight requests.
                    Batches = "batches",
                }
                /// What gives a request of an elevator to its device (`blk_mq_run_hw_queue`).
                dispatch: Dispatch {
                    /// The task that submits it.
                    Submitter = "submitter",
                    /// kblockd, unless the submitting task flushes a plug while it goes on (blk-mq).
                    Kblockd = "kblockd",
                }
                /// What CFQ does when a queue whose turn it is has a request that has waited for longer than it may
                /// (`cfq_dispatch_request`).
                expired_request: ExpiredRequest {
                    /// CFQ gives the device that request first. A sync request that arrives before the device may have it ends
                    /// the turn of the async queue.
                    Checked = "checked",
                    /// The same, but a sync request does not end the turn before the device has a request of the queue.
                    HoldsTurn = "holds-turn",
                }
                /// Largest request that the block layer makes, whatever more its device takes (`BLK_DEF_MAX_SECTORS`). Its
                /// pages are written when all of it is. Beyond 512 KiB it is for large folios: single pages are a segment
                /// each.
                max_sectors: MaxSectors {
                    /// 512 KiB.
                    Sectors1024 = "512k",
                    /// 1280 KiB.
                    Sectors2560 = "1280k",
                    /// 4 MiB.
                    Sectors8192 = "4m",
                }
            }
        }
    };
}

pub(super) use block;

//! Statements on files.

use super::context::{Context, Stop, missing};
use crate::fs::metadata::pay;
use crate::ids::InodeId;
use crate::mm::files::filemap::{self, OpenFile};
use crate::mm::files::filemap_write;
use crate::mm::files::truncate;
use crate::mm::shrinker::{d_lookup, drop_slab};
use crate::mm::types::Gfp;
use crate::mm::writeback::fs_writeback::{self, Range};
use crate::world::Sys;
use lowmark_spec::machine::PAGE_SIZE;
use lowmark_spec::pace::Pace;
use lowmark_spec::visit::Visit;
use lowmark_spec::workload::{Amount, FileIo, FileRef, Op, Order, Stmt};

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    Write,
    Append,
}

/// Carries out a statement on files.
pub(super) async fn run(context: &mut Context, stmt: &Stmt) -> Result<(), Stop> {
    let sys = context.sys.clone();
    match &stmt.op {
        Op::Read(io) => return transfer(context, stmt, io, Way::Read).await,
        Op::Write(io) => return transfer(context, stmt, io, Way::Write).await,
        Op::Append(io) => return transfer(context, stmt, io, Way::Append).await,
        Op::Copy { from, to, block } => return copy(context, *from, *to, *block).await,
        Op::Fsync { file: target, .. } => fsync(context, stmt, *target).await?,
        Op::SyncRange { file, range } => {
            if let Some(inode) = existing(context, *file, FileRef::File(*file)).await? {
                let end = range
                    .offset
                    .saturating_add(range.length)
                    .div_ceil(PAGE_SIZE);
                let page = |at: u64| u32::try_from(at).unwrap_or(u32::MAX);
                let range = Range {
                    first: page(range.offset / PAGE_SIZE),
                    last: page(end.saturating_sub(1)),
                };
                fs_writeback::writepages(&sys, inode, range, &mut u64::MAX.clone(), false).await;
                fs_writeback::wait_on_writeback(&sys, inode, range).await;
                sys.world().mm.report_flag(inode);
                put_name(&sys, *file);
            }
        }
        Op::Sync => fs_writeback::sync(&sys).await,
        Op::Create { file } => {
            let file = pick(context, stmt, *file);
            forget(context, file).await;
            if let Some(inode) = look_up(context, file, true).await? {
                truncate::truncate(&sys, inode, 0).await;
                put_name(&sys, file);
            }
        }
        Op::Delete { file: target } => {
            let file = pick(context, stmt, *target);
            forget(context, file).await;
            if existing(context, file, *target).await?.is_some() {
                sys.charge_work(sys.costs.unlink_ns).await;
                let named = sys.world().workload.files.unname(file);
                if let Some(inode) = named {
                    truncate::unlink(&sys, inode).await;
                }
            }
        }
        Op::Truncate { file: target, size } => {
            let file = pick(context, stmt, *target);
            if let Some(inode) = existing(context, file, *target).await? {
                truncate::truncate(&sys, inode, *size).await;
                put_name(&sys, file);
            }
        }
        Op::StatWalk { set } => stat_walk(context, *set).await?,
        Op::DropCaches { what } => {
            if what & 1 != 0 {
                truncate::drop_pagecache(&sys).await;
            }
            if what & 2 != 0 {
                drop_slab(&sys).await;
            }
        }
        _ => debug_assert!(false, "{} is not about files", stmt.op.name()),
    }
    sys.charge_kernel(sys.costs.syscall_ns).await;
    Ok(())
}

/// fsync(2), by a file that the instance has open or opens for that.
async fn fsync(context: &mut Context, stmt: &Stmt, target: FileRef) -> Result<(), Stop> {
    let sys = context.sys.clone();
    let file = pick(context, stmt, target);
    let Some(inode) = existing(context, file, target).await? else {
        return Ok(());
    };
    let open = context.open.get_mut(&file);
    let mut open = open.filter(|open| open.inode == inode);
    let mut told = match &open {
        Some(open) => open.told,
        None => sys.world().mm.sample_errors(inode),
    };
    fs_writeback::fsync_range(&sys, inode, Range::ALL).await;
    sys.world().mm.report_error(inode, &mut told);
    if let Some(open) = &mut open {
        open.told = told;
    }
    put_name(&sys, file);
    Ok(())
}

/// stat(2) of every file of a set; of one that is missing, the name is looked up all the same.
async fn stat_walk(context: &mut Context, set: usize) -> Result<(), Stop> {
    let sys = context.sys.clone();
    let files = sys.world().workload.files.set_len(set);
    for at in 0..files {
        let file = sys.world().workload.files.of_set(set, at);
        look_up(context, file, false).await?;
        put_name(&sys, file);
        sys.charge_kernel(sys.costs.syscall_ns).await;
    }
    Ok(())
}

/// A file of a set may be missing, because others delete too; a file of its own may not.
fn unless_missing(target: FileRef) -> Result<(), Stop> {
    match target {
        FileRef::Set(..) => Ok(()),
        FileRef::File(_) => Err(missing()),
    }
}

/// The inode of the file that `target` came to: it and its name are in memory until the name is put.
async fn existing(
    context: &Context,
    file: usize,
    target: FileRef,
) -> Result<Option<InodeId>, Stop> {
    let inode = look_up(context, file, false).await?;
    if inode.is_none() {
        put_name(&context.sys, file);
        unless_missing(target)?;
    }
    Ok(inode)
}

/// Looks up the name of a file, which is made if it is to be: the file, if there is one.
async fn look_up(context: &Context, file: usize, create: bool) -> Result<Option<InodeId>, Stop> {
    let sys = &context.sys;
    loop {
        let made = create && open_or_create(sys, file).await;
        sys.charge_work(sys.costs.lookup_ns).await;
        let name = sys.world().workload.files.name(file);
        if d_lookup(sys, name).await? && !made {
            sys.charge_work(sys.costs.read_inode_ns).await;
        }
        // Whoever waited for memory may find that the file is gone.
        let inode = sys.world().workload.files.inode(file);
        if inode.is_some() || !create {
            return Ok(inode);
        }
    }
}

/// A name that was looked up is not needed any more.
fn put_name(sys: &Sys, file: usize) {
    let world = &mut *sys.world();
    if let Some(name) = world.workload.files.name(file) {
        world.mm.dput(name);
    }
}

/// The file that a statement works on this time.
fn pick(context: &mut Context, stmt: &Stmt, file: FileRef) -> usize {
    let (set, order) = match file {
        FileRef::File(file) => return file,
        FileRef::Set(set, order) => (set, order),
    };
    let key = (context.task, stmt.line, stmt.op.name(), set);
    let sys = context.sys.clone();
    let world = &mut *sys.world();
    let files = world.workload.files.set_len(set).max(1);
    let at = match order {
        // The instances of a task take turns through the set.
        Order::Seq => {
            let turn = world.workload.files.turns.entry(key).or_insert(0);
            *turn += 1;
            (*turn - 1) % files
        }
        _ => {
            let stream = &mut context.stream;
            let visit = context.picks.entry(key);
            let tables = &mut world.workload.zipf_tables;
            visit
                .or_insert_with(|| Visit::new(order, files, stream, tables))
                .next(files, stream)
        }
    };
    world.workload.files.of_set(set, at)
}

/// O_CREAT: the file of this number, made if there is none; whether it was made.
async fn open_or_create(sys: &Sys, file: usize) -> bool {
    let exists = |sys: &Sys| sys.world().workload.files.inode(file).is_some();
    if exists(sys) {
        return false;
    }
    // It is there when it has been paid for, or before if somebody else was faster.
    sys.charge_kernel(sys.costs.create_ns).await;
    if exists(sys) {
        return false;
    }
    let fs = sys.world().create(file);
    pay(sys, fs).await;
    true
}

/// Opens the file of the workload that `target` came to; one of its own stays open in the instance. None: it is
/// missing, as it may be.
async fn open(
    context: &mut Context,
    file: usize,
    target: FileRef,
    create: bool,
) -> Result<Option<OpenFile>, Stop> {
    if let Some(open) = context.open.remove(&file) {
        return Ok(Some(open));
    }
    let inode = if create {
        look_up(context, file, true).await?
    } else {
        existing(context, file, target).await?
    };
    let Some(inode) = inode else {
        return Ok(None);
    };
    let opened = {
        let world = &mut *context.sys.world();
        world.mm.inodes[inode].users += 1;
        OpenFile::new(world, inode)
    };
    context.sys.charge_work(context.sys.costs.open_ns).await;
    Ok(Some(opened))
}

/// Keeps a file open, or closes one of a set.
async fn put_back(context: &mut Context, file: usize, open: OpenFile, target: FileRef) {
    match target {
        FileRef::File(_) => drop(context.open.insert(file, open)),
        FileRef::Set(..) => truncate::close(&context.sys.clone(), open.inode).await,
    }
}

/// A file of this name that is still open is another one from now on.
async fn forget(context: &mut Context, file: usize) {
    if let Some(open) = context.open.remove(&file) {
        truncate::close(&context.sys.clone(), open.inode).await;
    }
}

/// Closes everything that an instance has open.
pub(super) async fn close_all(context: &mut Context) {
    for (_, open) in std::mem::take(&mut context.open) {
        truncate::close(&context.sys.clone(), open.inode).await;
    }
}

async fn transfer(context: &mut Context, stmt: &Stmt, io: &FileIo, way: Way) -> Result<(), Stop> {
    let file = pick(context, stmt, io.file);
    let Some(mut opened) = open(context, file, io.file, way != Way::Read).await? else {
        return Ok(());
    };
    let result = blocks(context, io, file, &mut opened, way).await;
    put_back(context, file, opened, io.file).await;
    result
}

/// The blocks of a transfer.
async fn blocks(
    context: &mut Context,
    io: &FileIo,
    file: usize,
    open: &mut OpenFile,
    way: Way,
) -> Result<(), Stop> {
    let sys = context.sys.clone();
    // What a write makes is as large as the workload says; what a read finds, as it is.
    let size = match way {
        Way::Read => sys.world().mm.inodes[open.inode].size,
        _ => sys.world().workload.files.planned(file),
    };
    let units = size.div_ceil(io.block.max(1));
    let total = match io.amount {
        Amount::Count(count) => count,
        Amount::Passes(passes) => units.saturating_mul(passes),
    };
    if units == 0 && way != Way::Append {
        return Ok(());
    }
    let gfp = Gfp::user(sys.world().sched.current_node());
    let mut pace = io.rate.map(|rate| Pace::new(rate, sys.world().sched.now()));
    let mut visit = (way != Way::Append).then(|| {
        let tables = &mut sys.world().workload.zipf_tables;
        Visit::new(io.order, units, &mut context.stream, tables)
    });
    for _ in 0..total {
        let (start, length) = match &mut visit {
            Some(visit) => {
                let offset = visit.next(units, &mut context.stream) * io.block;
                (offset, io.block.min(size - offset))
            }
            None => (sys.world().mm.inodes[open.inode].size, io.block),
        };
        if let Some(pace) = &mut pace {
            sys.sleep_until(pace.next(length)).await;
        }
        let end = start.saturating_add(length);
        if way == Way::Read {
            let read = filemap::read(&sys, open, start, end, gfp).await?;
            sys.world().workload.rchar += read;
        } else {
            write(&sys, open, start, end, io.sync, gfp).await?;
        }
        if sys.world().sched.current_killed() {
            return Err(Stop::Killed);
        }
    }
    Ok(())
}

/// write(2), with O_SYNC also to the device.
async fn write(
    sys: &Sys,
    open: &mut OpenFile,
    start: u64,
    end: u64,
    sync: bool,
    gfp: Gfp,
) -> Result<(), Stop> {
    filemap_write::write(sys, open, start, end, gfp).await?;
    sys.world().workload.wchar += end - start;
    if sync && end > start {
        let range = Range {
            first: (start / PAGE_SIZE) as u32,
            last: ((end - 1) / PAGE_SIZE) as u32,
        };
        fs_writeback::fsync_range(sys, open.inode, range).await;
        sys.world().mm.report_error(open.inode, &mut open.told);
    }
    Ok(())
}

/// cp(1): the target is made anew.
async fn copy(context: &mut Context, from: usize, to: usize, block: u64) -> Result<(), Stop> {
    let sys = context.sys.clone();
    let (source, target) = (FileRef::File(from), FileRef::File(to));
    let Some(mut source) = open(context, from, source, false).await? else {
        return Ok(());
    };
    let Some(mut target) = open(context, to, target, true).await? else {
        return Ok(());
    };
    truncate::truncate(&sys, target.inode, 0).await;
    let gfp = Gfp::user(sys.world().sched.current_node());
    let mut offset = 0;
    let result = loop {
        let read = match filemap::read(&sys, &mut source, offset, offset + block, gfp).await {
            Ok(0) => break Ok(()),
            Ok(read) => read,
            Err(error) => break Err(error.into()),
        };
        if let Err(stop) = write(&sys, &mut target, offset, offset + read, false, gfp).await {
            break Err(stop);
        }
        offset += read;
        if sys.world().sched.current_killed() {
            break Err(Stop::Killed);
        }
    };
    context.open.insert(from, source);
    context.open.insert(to, target);
    result
}

//! Statements on files.

use super::files::{Open, fill, named, open_path};
use super::interpreter::{Context, Stop};
use super::report::now_ns;
use super::sys::{self, Backing, Mapping};
use super::time;
use lowmark_spec::machine::PAGE_SIZE;
use lowmark_spec::pace::Pace;
use lowmark_spec::random::ZipfTables;
use lowmark_spec::visit::Visit;
use lowmark_spec::workload::{Amount, FileId, FileIo, FileKind, FileRef, Op, Order, Stmt};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// A page-aligned buffer, as O_DIRECT wants it, and what it holds.
pub(super) struct Buffer {
    memory: Mapping,
    kind: FileKind,
}

/// Which file a statement works on this time.
enum Target {
    One(FileId),
    OfSet(PathBuf, u64, FileKind),
}

/// Carries out a statement on files.
pub(super) fn run(context: &mut Context, stmt: &Stmt) -> Result<(), Stop> {
    match &stmt.op {
        Op::Read(io) => transfer(context, stmt, io, Way::Read),
        Op::Write(io) => transfer(context, stmt, io, Way::Write),
        Op::Append(io) => transfer(context, stmt, io, Way::Append),
        Op::Fsync { file, data_only } => {
            let target = pick(context, stmt, *file);
            with_file(context, &target, Open::default(), |file, _| {
                if *data_only {
                    file.sync_data()
                } else {
                    file.sync_all()
                }
            })
        }
        Op::SyncRange { file, range } => {
            let target = Target::One(*file);
            with_file(context, &target, Open::default(), |file, _| {
                sys::sync_file_range(file, *range)
            })
        }
        Op::Create { file } => {
            let target = pick(context, stmt, *file);
            forget(context, &target);
            let path = path_of(context, &target);
            named(&path, File::create(&path))?;
            Ok(())
        }
        Op::Delete { file } => {
            let target = pick(context, stmt, *file);
            forget(context, &target);
            let path = path_of(context, &target);
            Ok(named(
                &path,
                unless_missing(&target, fs::remove_file(&path)),
            )?)
        }
        Op::Truncate { file, size } => {
            let target = pick(context, stmt, *file);
            with_file(context, &target, Open::default(), |file, _| {
                file.set_len(*size)
            })
        }
        Op::StatWalk { set } => {
            for at in 0..context.program.files.set_len(*set) {
                // A file may be missing: others delete and create.
                let _ = fs::metadata(context.program.files.set_path(*set, at));
            }
            Ok(())
        }
        Op::Copy { from, to, block } => copy(context, *from, *to, *block),
        _ => Ok(()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    Write,
    Append,
}

fn transfer(context: &mut Context, stmt: &Stmt, io: &FileIo, way: Way) -> Result<(), Stop> {
    let target = pick(context, stmt, io.file);
    let how = Open {
        create: way != Way::Read,
        direct: io.direct,
        sync: io.sync,
        append: way == Way::Append,
    };
    let kind = match &target {
        Target::One(file) => context.program.files.kind(*file),
        Target::OfSet(_, _, kind) => *kind,
    };
    // What a write makes is as large as the workload says; what a read finds, as it is.
    let planned = match &target {
        Target::One(file) => context.program.workload.files[*file].size,
        Target::OfSet(_, size, _) => *size,
    };
    let mut buffer = buffer(context, io.block, kind)?;
    let mut stream = context.stream.clone();
    let result = with_file(context, &target, how, |file, _| {
        let bytes = &mut buffer.memory.as_buffer()[..io.block as usize];
        let size = match way {
            Way::Read => file.metadata()?.len(),
            _ => planned,
        };
        let units = size.div_ceil(io.block.max(1));
        let total = match io.amount {
            Amount::Count(count) => count,
            Amount::Passes(passes) => units.saturating_mul(passes),
        };
        let mut pace = io.rate.map(|rate| Pace::new(rate, now_ns()));
        if way == Way::Append {
            for _ in 0..total {
                pace.iter_mut().for_each(|pace| time::wait(pace, io.block));
                let mut rest = &*bytes;
                while !rest.is_empty() {
                    let written = rustix::io::write(file, rest)?;
                    rest = &rest[written..];
                }
            }
            return Ok(());
        }
        if units == 0 {
            return Ok(());
        }
        let mut visit = Visit::new(io.order, units, &mut stream, &mut ZipfTables::default());
        for _ in 0..total {
            let offset = visit.next(units, &mut stream) * io.block;
            let length = if io.direct {
                io.block
            } else {
                io.block.min(size - offset)
            };
            pace.iter_mut().for_each(|pace| time::wait(pace, length));
            let bytes = &mut bytes[..length as usize];
            match way {
                Way::Read => read_fully(file, bytes, offset)?,
                _ => file.write_all_at(bytes, offset)?,
            }
        }
        Ok(())
    });
    context.stream = stream;
    context.buffer = Some(buffer);
    result
}

/// Reads until the buffer is full or the file ends.
fn read_fully(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], offset + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    Ok(())
}

fn copy(context: &mut Context, from: FileId, to: FileId, block: u64) -> Result<(), Stop> {
    let files = &context.program.files;
    let source = named(files.path(from), files.open(from, Open::default()))?;
    let create = Open {
        create: true,
        ..Open::default()
    };
    let target = named(files.path(to), files.open(to, create))?;
    let mut buffer = buffer(context, block, FileKind::Zero)?;
    let bytes = &mut buffer.memory.as_buffer()[..block as usize];
    target.set_len(0)?;
    let mut offset = 0;
    loop {
        let read = source.read_at(bytes, offset)?;
        if read == 0 {
            break;
        }
        target.write_all_at(&bytes[..read], offset)?;
        offset += read as u64;
    }
    // It holds the source's bytes now, so it is of no use for anything else.
    Ok(())
}

/// A buffer of at least this size that holds what files of this kind hold.
fn buffer(context: &mut Context, block: u64, kind: FileKind) -> io::Result<Buffer> {
    let kept = context.buffer.take();
    if let Some(buffer) = kept.filter(|b| b.kind == kind && b.memory.length() >= block) {
        return Ok(buffer);
    }
    let mut memory = Mapping::new(&Backing::AnonPrivate, block.max(PAGE_SIZE), false)?;
    fill(memory.as_buffer(), kind);
    Ok(Buffer { memory, kind })
}

/// Chooses the file of a set for this execution of a statement.
fn pick(context: &mut Context, stmt: &Stmt, file: FileRef) -> Target {
    let (set, order) = match file {
        FileRef::File(file) => return Target::One(file),
        FileRef::Set(set, order) => (set, order),
    };
    let program = context.program.clone();
    let key = (context.task, stmt.line, stmt.op.name(), set);
    let turn = program.turns.get(&key).copied().unwrap_or(0);
    let files = program.files.set_len(set).max(1);
    let at = match order {
        // The instances of a task take turns through the set.
        Order::Seq => program.shared.turn(turn) % files,
        _ => {
            let stream = &mut context.stream;
            let visit = context.picks.entry(turn);
            visit
                .or_insert_with(|| Visit::new(order, files, stream, &mut ZipfTables::default()))
                .next(files, stream)
        }
    };
    let size = program.files.set_size(set, at);
    Target::OfSet(
        program.files.set_path(set, at),
        size,
        program.files.set_kind(set),
    )
}

/// Opens the target, or takes it as it is still open, and acts on it.
fn with_file(
    context: &mut Context,
    target: &Target,
    how: Open,
    act: impl FnOnce(&File, &Target) -> io::Result<()>,
) -> Result<(), Stop> {
    match target {
        Target::One(id) => {
            let files = &context.program.files;
            let key = (*id, how.direct, how.sync, how.append);
            let path = files.path(*id).to_owned();
            let file = match context.open.remove(&key) {
                Some(file) => file,
                None => named(&path, files.open(*id, how))?,
            };
            let result = named(&path, act(&file, target));
            context.open.insert(key, file);
            Ok(result?)
        }
        Target::OfSet(path, ..) => match open_path(path, how) {
            // Deleted by another statement of the workload: there is nothing to do.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            file => Ok(named(path, file.and_then(|file| act(&file, target)))?),
        },
    }
}

/// A file of this name that is still open is another one from now on.
fn forget(context: &mut Context, target: &Target) {
    if let Target::One(id) = target {
        context.open.retain(|(file, ..), _| file != id);
    }
}

fn path_of(context: &Context, target: &Target) -> PathBuf {
    match target {
        Target::One(file) => context.program.files.path(*file).to_owned(),
        Target::OfSet(path, ..) => path.clone(),
    }
}

/// A file of a set may be missing, because others delete too; a file of its own may not.
fn unless_missing(target: &Target, result: io::Result<()>) -> io::Result<()> {
    match (target, result) {
        (Target::OfSet(..), Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        (_, result) => result,
    }
}

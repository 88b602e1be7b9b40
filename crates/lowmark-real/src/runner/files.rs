//! The files of a workload: where they lie, making those that exist before the run, opening them.

use super::interpreter::Stop;
use lowmark_spec::random::Stream;
use lowmark_spec::workload::{FileId, FileKind, FileSet, FileSetId, SizeDist, Workload};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes written at once where files are made.
const CHUNK: usize = 1 << 20;

/// Where the file systems of a machine are mounted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roots {
    /// Directories by the name of the file system.
    pub by_name: BTreeMap<String, PathBuf>,
    /// The machine's first file system.
    pub first: Option<PathBuf>,
}

impl Roots {
    fn of(&self, fs: &str) -> io::Result<&Path> {
        let root = match fs {
            "" => self.first.as_ref(),
            _ => self.by_name.get(fs),
        };
        let missing =
            || io::Error::other(format!("there is no file system {fs:?} to put files on"));
        root.map(PathBuf::as_path).ok_or_else(missing)
    }
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Open {
    pub(super) create: bool,
    pub(super) direct: bool,
    pub(super) sync: bool,
    pub(super) append: bool,
}

/// The files, as every process of the run sees them.
#[derive(Debug)]
pub(super) struct Files {
    paths: Vec<PathBuf>,
    /// Files that have no name any more.
    unlinked: Vec<Option<File>>,
    set_roots: Vec<PathBuf>,
    sets: Vec<FileSet>,
    kinds: Vec<FileKind>,
    seed: u64,
}

impl Files {
    /// Makes what exists before the run.
    pub(super) fn prepare(workload: &Workload, roots: &Roots, seed: u64) -> io::Result<Files> {
        let mut files = Files {
            paths: Vec::new(),
            unlinked: Vec::new(),
            set_roots: Vec::new(),
            sets: workload.filesets.clone(),
            kinds: workload.files.iter().map(|file| file.kind).collect(),
            seed,
        };
        for file in &workload.files {
            let path = roots.of(&file.fs)?.join(&file.path);
            named(&path, parent_of(&path))?;
            if file.exists {
                named(&path, make(&path, file.kind, file.size))?;
            }
            let mut kept = None;
            if file.unlinked {
                let open = Open {
                    create: true,
                    ..Open::default()
                };
                kept = Some(named(&path, open_path(&path, open))?);
                named(&path, fs::remove_file(&path))?;
            }
            files.paths.push(path);
            files.unlinked.push(kept);
        }
        for (id, set) in workload.filesets.iter().enumerate() {
            files.set_roots.push(roots.of(&set.fs)?.join(&set.name));
            for directory in 0..set.directories {
                let path = files.set_roots[id].join(format!("d{directory}"));
                named(&path, fs::create_dir_all(&path))?;
            }
            for at in (0..files.set_len(id)).filter(|_| set.exists) {
                let path = files.set_path(id, at);
                named(&path, make(&path, set.kind, files.set_size(id, at)))?;
            }
        }
        Ok(files)
    }

    pub(super) fn path(&self, file: FileId) -> &Path {
        &self.paths[file]
    }

    pub(super) fn kind(&self, file: FileId) -> FileKind {
        self.kinds[file]
    }

    pub(super) fn open(&self, file: FileId, how: Open) -> io::Result<File> {
        if let Some(open) = &self.unlinked[file] {
            return open.try_clone();
        }
        open_path(&self.paths[file], how)
    }

    /// Files in a set.
    pub(super) fn set_len(&self, set: FileSetId) -> u64 {
        self.sets[set]
            .directories
            .saturating_mul(self.sets[set].files)
    }

    pub(super) fn set_kind(&self, set: FileSetId) -> FileKind {
        self.sets[set].kind
    }

    pub(super) fn set_path(&self, set: FileSetId, at: u64) -> PathBuf {
        let files = self.sets[set].files.max(1);
        self.set_roots[set].join(format!("d{}/f{}", at / files, at % files))
    }

    /// Size of a file of a set: drawn by its number, so that it is the same whoever asks.
    pub(super) fn set_size(&self, set: FileSetId, at: u64) -> u64 {
        match self.sets[set].size {
            SizeDist::Fixed(size) | SizeDist::LogNormal(size, _) => size,
            SizeDist::Uniform(low, high) => {
                Stream::new(self.seed, &self.sets[set].name, at).between(low, high)
            }
        }
    }
}

fn parent_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

pub(super) fn open_path(path: &Path, how: Open) -> io::Result<File> {
    let mut flags = 0;
    if how.direct {
        flags |= libc::O_DIRECT;
    }
    if how.sync {
        flags |= libc::O_SYNC;
    }
    OpenOptions::new()
        .read(true)
        .write(true)
        .append(how.append)
        .create(how.create)
        .custom_flags(flags)
        .open(path)
}

/// An error that says which file it is about.
pub(super) fn named<T>(path: &Path, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Failed(error.to_string())
    }
}

/// Makes a file of this size.
fn make(path: &Path, kind: FileKind, size: u64) -> io::Result<()> {
    let mut file = File::create(path)?;
    if kind == FileKind::Sparse {
        return file.set_len(size);
    }
    let mut chunk = vec![0; CHUNK];
    fill(&mut chunk, kind);
    let mut left = size;
    while left > 0 {
        let bytes = left.min(CHUNK as u64) as usize;
        file.write_all(&chunk[..bytes])?;
        left -= bytes as u64;
    }
    Ok(())
}

/// Fills a buffer with what files of this kind hold.
pub(super) fn fill(buffer: &mut [u8], kind: FileKind) {
    if kind == FileKind::Random {
        let mut stream = Stream::new(0, "content", 0);
        for word in buffer.chunks_mut(8) {
            word.copy_from_slice(&stream.next_u64().to_le_bytes()[..word.len()]);
        }
    }
}

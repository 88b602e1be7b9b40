//! Statements on files.

use crate::workload::{Amount, FileIo, FileRef, Op, Order, SizeDist};

use super::super::error::{Problem, Result};
use super::super::fields::Fields;
use super::super::objects::FileName;
use super::super::scope::Scope;
use super::super::tree::Node;
use super::{Body, STATEMENTS};

/// Parameters of `read`, `write` and `append`.
pub(super) const PARAMETERS: &[&str] = &[
    "pick", "block", "order", "passes", "count", "rate", "direct", "sync",
];

/// Bytes per call unless `block` says otherwise: what cp(1) and cat(1) use.
const BLOCK_DEFAULT: u64 = 128 << 10;

impl Body<'_, '_> {
    pub(super) fn file_io(&self, subject: &Node, fields: &Fields<'_, '_>) -> Result<FileIo> {
        let io = FileIo {
            file: self.file_ref(subject, fields)?,
            block: fields.or("block", Scope::some_size, BLOCK_DEFAULT)?,
            order: fields.or("order", Scope::order, Order::Seq)?,
            amount: self.amount(fields)?,
            rate: fields.maybe("rate", Scope::data_rate)?,
            direct: fields.or("direct", Scope::flag, false)?,
            sync: fields.or("sync", Scope::flag, false)?,
        };
        if let Amount::Passes(_) = io.amount
            && self.is_empty(io.file)
        {
            return Err(Problem::new(
                subject.span,
                format!(
                    "passes over {} do nothing: its size is 0",
                    subject.written()
                ),
                "give the file its final `size`, or write `count`, the number of blocks",
            ));
        }
        if io.direct && !io.block.is_multiple_of(512) {
            return Err(Problem::new(
                fields.node("block").unwrap_or(subject).span,
                format!(
                    "expected a multiple of 512 bytes for direct I/O, found {}",
                    io.block
                ),
                "O_DIRECT needs whole sectors",
            ));
        }
        Ok(io)
    }

    fn is_empty(&self, file: FileRef) -> bool {
        match file {
            FileRef::File(file) => self
                .shared
                .objects
                .files
                .get(file)
                .is_some_and(|file| file.size == 0),
            FileRef::Set(set, _) => self
                .shared
                .objects
                .filesets
                .get(set)
                .is_some_and(|set| set.size == SizeDist::Fixed(0)),
        }
    }

    pub(super) fn append(&self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        for key in ["order", "passes"] {
            fields.refuse(
                key,
                "but every append goes to the end",
                "use `count`, the number of blocks",
            )?;
        }
        let count = fields.or("count", Scope::count, 1)?;
        Ok(Op::Append(FileIo {
            file: self.file_ref(subject, fields)?,
            block: fields.or("block", Scope::some_size, BLOCK_DEFAULT)?,
            order: Order::Seq,
            amount: Amount::Count(count),
            rate: fields.maybe("rate", Scope::data_rate)?,
            direct: fields.or("direct", Scope::flag, false)?,
            sync: fields.or("sync", Scope::flag, false)?,
        }))
    }

    pub(super) fn fsync(
        &self,
        subject: &Node,
        fields: &Fields<'_, '_>,
        data_only: bool,
    ) -> Result<Op> {
        Ok(Op::Fsync {
            file: self.file_ref(subject, fields)?,
            data_only,
        })
    }

    pub(super) fn sync_range(&self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let file = self.single_file(subject)?;
        let size = self
            .shared
            .objects
            .files
            .get(file)
            .map_or(0, |file| file.size);
        let whole = crate::workload::Range {
            offset: 0,
            length: size,
        };
        // Appends may have made the file longer than it was defined.
        let range = match (fields.node("length"), fields.node("offset")) {
            (None, None) => whole,
            (Some(_), _) => self.range(fields, None, false)?.unwrap_or(whole),
            (None, Some(_)) => self.range(fields, Some(size), false)?.unwrap_or(whole),
        };
        Ok(Op::SyncRange { file, range })
    }

    pub(super) fn drop_caches(&self, subject: &Node) -> Result<Op> {
        match self.scope.count(subject)? {
            1 => Ok(Op::DropCaches { what: 1 }),
            2 => Ok(Op::DropCaches { what: 2 }),
            3 => Ok(Op::DropCaches { what: 3 }),
            other => Err(Problem::new(
                subject.span,
                format!("expected 1, 2 or 3, found {other}"),
                "1 drops the page cache, 2 slab objects, 3 both",
            )),
        }
    }

    pub(super) fn truncate(&self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let file = self.file_ref(subject, fields)?;
        Ok(Op::Truncate {
            file,
            size: fields.or("size", Scope::size, 0)?,
        })
    }

    pub(super) fn stat_walk(&self, subject: &Node) -> Result<Op> {
        match self.shared.objects.file_name(self.scope, subject)? {
            FileName::Set(set) => Ok(Op::StatWalk { set }),
            FileName::Broken => Ok(Op::StatWalk { set: 0 }),
            FileName::File(_) => Err(Problem::new(
                subject.span,
                format!("expected a fileset, found the file {}", subject.written()),
                "define a set in [fileset.NAME]",
            )),
        }
    }

    pub(super) fn copy(&self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let from = self.single_file(subject)?;
        let node = fields.need_node("to", "to = \"NAME\", the file to write")?;
        let to = self.single_file(node)?;
        if from == to && self.shared.problems.is_empty() {
            return Err(Problem::new(
                node.span,
                format!(
                    "expected another file than the source, found {}",
                    node.written()
                ),
                "a file cannot be copied onto itself",
            ));
        }
        Ok(Op::Copy {
            from,
            to,
            block: fields.or("block", Scope::some_size, BLOCK_DEFAULT)?,
        })
    }

    /// `{ pipe = { read = … }, to = { write = … }, chunk, depth }`
    pub(super) fn pipe(&self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let to = fields.need_node("to", "to = { write = \"NAME\" }")?;
        Ok(Op::Pipe {
            read: self.pipe_end(subject, "read")?,
            write: self.pipe_end(to, "write")?,
            chunk: fields.or("chunk", Scope::some_size, 64 << 10)?,
            depth: fields.or("depth", Scope::some, 16)?,
        })
    }

    fn pipe_end(&self, node: &Node, name: &str) -> Result<FileIo> {
        let owner = format!("the `{name}` end of the pipe");
        let allowed = STATEMENTS.iter().find(|(statement, _)| *statement == name);
        let parameters = allowed.map_or(PARAMETERS, |(_, parameters)| *parameters);
        let keys: Vec<&str> = std::iter::once(name)
            .chain(parameters.iter().copied())
            .collect();
        let fields = Fields::open(node, node.span, &owner, &keys, self.scope)?;
        self.file_io(
            fields.need_node(name, &format!("{name} = \"NAME\""))?,
            &fields,
        )
    }
}

//! Statements on memory: maps, touches, raw allocations.

use crate::workload::{
    Access, Advice, Alloc, AllocFlags, AllocSeries, FileRef, MapId, MapKind, Op, Probe, Range,
    Touch,
};

use super::super::error::{Problem, Result};
use super::super::fields::Fields;
use super::super::objects::FileName;
use super::super::scope::Scope;
use super::super::tree::Node;
use super::{Body, Shared};

const ADVICE: [(&str, Advice); 12] = [
    ("normal", Advice::Normal),
    ("random", Advice::Random),
    ("sequential", Advice::Sequential),
    ("willneed", Advice::Willneed),
    ("dontneed", Advice::Dontneed),
    ("hugepage", Advice::Hugepage),
    ("nohugepage", Advice::Nohugepage),
    ("cold", Advice::Cold),
    ("pageout", Advice::Pageout),
    ("free", Advice::Free),
    ("populate", Advice::Populate),
    ("populate-read", Advice::PopulateRead),
];

const ACCESS: [(&str, Access); 3] = [
    ("read", Access::Read),
    ("write", Access::Write),
    ("verify", Access::Verify),
];

const PROBES: [(&str, Probe); 2] = [("resident", Probe::Resident), ("huge", Probe::Huge)];

/// Kinds of maps before the file is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    AnonPrivate,
    AnonShared,
    FileShared,
    FilePrivate,
}

const KINDS: [(&str, Kind); 4] = [
    ("anon-private", Kind::AnonPrivate),
    ("anon-shared", Kind::AnonShared),
    ("file-shared", Kind::FileShared),
    ("file-private", Kind::FilePrivate),
];

const ALLOC_FLAGS: [(&str, AllocFlags); 4] = [
    ("kernel", AllocFlags::Kernel),
    ("movable", AllocFlags::Movable),
    ("hugetlb", AllocFlags::Hugetlb),
    ("thp", AllocFlags::Thp),
];

/// Largest order of `alloc`: 1 GiB of base pages.
const ORDER_MAX: u64 = 18;

fn order(scope: &Scope<'_>, node: &Node) -> Result<u32> {
    let order = scope.count(node)?;
    let fits = u32::try_from(order).ok().filter(|_| order <= ORDER_MAX);
    fits.ok_or_else(|| {
        Problem::new(
            node.span,
            format!("expected an order from 0 to {ORDER_MAX}, found {order}"),
            "order k is 2^k pages; a huge page is HPAGE_ORDER",
        )
    })
}

fn advice(scope: &Scope<'_>, node: &Node) -> Result<Advice> {
    scope.choice(node, "an advice", &ADVICE)
}

impl Body<'_, '_> {
    pub(super) fn reclaim(&self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let objects = &self.shared.objects;
        if objects.cgroups.iter().any(|group| group.soft.is_some()) {
            return Err(Problem::new(
                subject.span,
                "found `reclaim`, which is of version 2, and cgroups with `soft`, which are of version 1",
                "remove the one or the other",
            ));
        }
        Ok(Op::Reclaim {
            size: self.scope.some_size(subject)?,
            cgroup: fields.need("cgroup", "cgroup = \"box\"", |scope, node| {
                objects.cgroup(scope, node)
            })?,
        })
    }

    pub(super) fn map(&mut self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let words = KINDS.map(|(word, _)| format!("\"{word}\"")).join(", ");
        let kind = fields.need("kind", &format!("kind = one of {words}"), |scope, node| {
            scope.choice(node, "a kind of map", &KINDS)
        })?;
        let offset = fields.or("offset", Scope::page_offset, 0)?;
        let (kind, length) = match kind {
            Kind::AnonPrivate | Kind::AnonShared => {
                for key in ["file", "offset", "exec"] {
                    fields.refuse(
                        key,
                        "but an anonymous map has no file",
                        "remove it, or use kind = \"file-shared\"",
                    )?;
                }
                let length = fields.need("size", "size = \"1G\"", Scope::pages)?;
                let private = kind == Kind::AnonPrivate;
                (
                    if private {
                        MapKind::AnonPrivate
                    } else {
                        MapKind::AnonShared
                    },
                    length,
                )
            }
            Kind::FileShared | Kind::FilePrivate => {
                let node = fields.need_node("file", "file = \"NAME\", the file to map")?;
                let file = self.single_file(node)?;
                let size = self
                    .shared
                    .objects
                    .files
                    .get(file)
                    .map_or(0, |file| file.size);
                let left = size.saturating_sub(offset);
                let length = match fields.maybe("size", Scope::pages)? {
                    Some(length) => length,
                    None => left.next_multiple_of(crate::machine::PAGE_SIZE),
                };
                if length == 0 || length > left.next_multiple_of(crate::machine::PAGE_SIZE) {
                    let place = fields
                        .node("size")
                        .or(fields.node("offset"))
                        .unwrap_or(node);
                    return Err(Problem::new(
                        place.span,
                        format!(
                            "expected a map within the file's {size} bytes, found {length} bytes at {offset}"
                        ),
                        "a touch beyond the end of a file is a SIGBUS; enlarge the file or map less",
                    ));
                }
                let shared = kind == Kind::FileShared;
                (
                    if shared {
                        MapKind::FileShared(file)
                    } else {
                        MapKind::FilePrivate(file)
                    },
                    length,
                )
            }
        };
        let advice = fields.maybe("advice", advice)?;
        let lock = fields.or("lock", Scope::flag, false)?;
        let exec = fields.or("exec", Scope::flag, false)?;
        let map = self.flow.map(self.scope, subject, length)?;
        Ok(Op::Map {
            map,
            kind,
            length,
            offset,
            advice,
            lock,
            exec,
        })
    }

    pub(super) fn single_file(&self, node: &Node) -> Result<usize> {
        match self.shared.objects.file_name(self.scope, node)? {
            FileName::File(file) => Ok(file),
            FileName::Broken => Ok(0),
            FileName::Set(_) => Err(Problem::new(
                node.span,
                format!("expected a file, found the fileset {}", node.written()),
                "define the file in [file.NAME]",
            )),
        }
    }

    /// `offset` and `length` of a map or file of `whole` bytes; `None` when neither is there.
    pub(super) fn range(
        &self,
        fields: &Fields<'_, '_>,
        whole: Option<u64>,
        pages: bool,
    ) -> Result<Option<Range>> {
        let (offset_node, length_node) = (fields.node("offset"), fields.node("length"));
        let Some(place) = length_node.or(offset_node) else {
            return Ok(None);
        };
        let read_offset = if pages {
            Scope::page_offset
        } else {
            Scope::size
        };
        let read_length = if pages {
            Scope::pages
        } else {
            Scope::some_size
        };
        let offset = fields.or("offset", read_offset, 0)?;
        let length = match (fields.maybe("length", read_length)?, whole) {
            (Some(length), _) => length,
            (None, Some(whole)) => whole.saturating_sub(offset),
            (None, None) => return Ok(None),
        };
        let end = offset.checked_add(length);
        if whole.is_some_and(|whole| length == 0 || end.is_none_or(|end| end > whole)) {
            let whole = whole.unwrap_or(0);
            return Err(Problem::new(
                place.span,
                format!("expected a range within {whole} bytes, found {length} bytes at {offset}"),
                "lower `offset` or `length`",
            ));
        }
        Ok(Some(Range { offset, length }))
    }

    /// `every`: the distance at which a range is repeated.
    fn every(&self, fields: &Fields<'_, '_>, length: u64) -> Result<Option<u64>> {
        let Some(node) = fields.node("every") else {
            return Ok(None);
        };
        let every = self.scope.pages(node)?;
        if every < length {
            return Err(Problem::new(
                node.span,
                format!("expected `every` of at least the length {length}, found {every}"),
                "the range is repeated at this distance; ranges must not overlap",
            ));
        }
        Ok(Some(every))
    }

    pub(super) fn unmap(&mut self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let (map, whole) = self.flow.present(self.scope, subject)?;
        let range = self.range(fields, whole, true)?;
        match range {
            None => {
                fields.refuse("every", "but no range to repeat", "add length = \"1M\"")?;
                self.flow.unmap(map);
                Ok(Op::Unmap {
                    map,
                    range,
                    every: None,
                })
            }
            Some(Range { length, .. }) => Ok(Op::Unmap {
                map,
                range,
                every: self.every(fields, length)?,
            }),
        }
    }

    pub(super) fn punch(&mut self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let (map, whole) = self.flow.present(self.scope, subject)?;
        fields.need_node("length", "length = \"1M\"")?;
        let range = self.range(fields, whole, true)?.unwrap_or(Range {
            offset: 0,
            length: 0,
        });
        Ok(Op::Punch {
            map,
            range,
            every: self.every(fields, range.length)?,
        })
    }

    pub(super) fn touch(&mut self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let (map, whole) = self.flow.present(self.scope, subject)?;
        let access = fields.need(
            "access",
            "access = \"read\", \"write\" or \"verify\"",
            |scope, node| scope.choice(node, "an access", &ACCESS),
        )?;
        let range = self.range(fields, whole, false)?;
        let step = fields.or("step", Scope::some_size, crate::machine::PAGE_SIZE)?;
        let touched = range.map(|range| range.length).or(whole);
        if let (Some(node), Some(touched)) = (fields.node("step"), touched)
            && step > touched
        {
            return Err(Problem::new(
                node.span,
                format!("expected a step within the {touched} bytes touched, found {step}"),
                "one touch is made every `step` bytes",
            ));
        }
        Ok(Op::Touch {
            map,
            what: Touch {
                access,
                order: fields.or("order", Scope::order, crate::workload::Order::Seq)?,
                step,
                amount: self.amount(fields)?,
                range,
                rate: fields.maybe("rate", Scope::rate)?,
            },
        })
    }

    pub(super) fn memset(&mut self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let (map, whole) = self.flow.present(self.scope, subject)?;
        Ok(Op::Memset {
            map,
            range: self.range(fields, whole, false)?,
        })
    }

    pub(super) fn advise(&mut self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let (map, whole) = self.flow.present(self.scope, subject)?;
        let advice = fields.need("advice", "advice = \"willneed\"", advice)?;
        Ok(Op::Advise {
            map,
            advice,
            range: self.range(fields, whole, true)?,
        })
    }

    pub(super) fn probe(&mut self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let (map, whole) = self.flow.present(self.scope, subject)?;
        if !self.sampled {
            return Err(Problem::new(
                subject.span,
                "found a `probe` outside of a `sample`",
                "its answer labels the sample around it: put both into { sample = \"NAME\", do = [ … ] }",
            ));
        }
        let offset = fields.or("offset", Scope::size, 0)?;
        if let (Some(node), Some(whole)) = (fields.node("offset"), whole)
            && offset >= whole
        {
            return Err(Problem::new(
                node.span,
                format!("expected an offset within the map's {whole} bytes, found {offset}"),
                "offsets count from 0",
            ));
        }
        let what = fields.need("what", "what = \"resident\" or \"huge\"", |scope, node| {
            scope.choice(node, "what to probe", &PROBES)
        })?;
        Ok(Op::Probe { map, offset, what })
    }

    pub(super) fn mlock(&mut self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let (map, whole): (MapId, _) = self.flow.present(self.scope, subject)?;
        Ok(Op::Mlock {
            map,
            lock: fields.or("lock", Scope::flag, true)?,
            range: self.range(fields, whole, true)?,
        })
    }

    pub(super) fn node(&self, subject: &Node) -> Result<Op> {
        let node = self.scope.count(subject)?;
        match u32::try_from(node) {
            Ok(index) if (index as usize) < self.shared.machine.nodes.len() => {
                Ok(Op::Node { node: index })
            }
            _ => Err(Problem::new(
                subject.span,
                format!(
                    "expected a node of the machine's {}, found {node}",
                    self.shared.machine.nodes.len()
                ),
                "nodes count from 0",
            )),
        }
    }

    pub(super) fn alloc(&mut self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let Shared {
            objects, budget, ..
        } = &mut *self.shared;
        let pool = objects.pool(self.scope, subject, self.task, budget)?;
        let order = fields.or("order", order, 0)?;
        let flags = fields.or(
            "gfp",
            |scope, node| scope.choice(node, "who allocates", &ALLOC_FLAGS),
            AllocFlags::Kernel,
        )?;
        let series = match fields.node("series") {
            None => None,
            Some(node) => {
                let name = self.scope.label(node)?;
                Some(self.alloc_series(&name, node)?)
            }
        };
        Ok(Op::Alloc(Alloc {
            pool,
            order,
            flags,
            count: fields.or("count", Scope::some, 1)?,
            pace_ns: fields.or("pace", Scope::duration, 0)?,
            busy: fields.or("busy", Scope::flag, false)?,
            give_up_success_ns: fields.maybe("give_up_success", Scope::some_duration)?,
            give_up_fail_ns: fields.maybe("give_up_fail", Scope::some_duration)?,
            series,
        }))
    }

    /// The series of a name, and that of the attempts that fail, in the same unit.
    fn alloc_series(&mut self, name: &str, node: &Node) -> Result<AllocSeries> {
        let Shared {
            objects, budget, ..
        } = &mut *self.shared;
        let success = objects.series_index(name, node.span, None, budget)?;
        let unit = objects.series.get(success).map(|series| series.unit);
        let failed = objects.series_index(&format!("{name}-failed"), node.span, unit, budget)?;
        Ok(AllocSeries { success, failed })
    }

    pub(super) fn free(&mut self, subject: &Node) -> Result<Op> {
        let pool = self
            .shared
            .objects
            .known_pool(self.scope, subject, self.task)?;
        Ok(Op::Free { pool })
    }

    /// The file or set that `subject` names, and the order in which `pick` chooses from a set.
    pub(super) fn file_ref(&self, subject: &Node, fields: &Fields<'_, '_>) -> Result<FileRef> {
        match self.shared.objects.file_name(self.scope, subject)? {
            FileName::Set(set) => Ok(FileRef::Set(
                set,
                fields.or("pick", Scope::order, crate::workload::Order::Seq)?,
            )),
            FileName::File(file) => {
                fields.refuse(
                    "pick",
                    "but there is only one file",
                    "remove `pick`, or name a fileset",
                )?;
                Ok(FileRef::File(file))
            }
            FileName::Broken => Ok(FileRef::File(0)),
        }
    }
}

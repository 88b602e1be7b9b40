//! What needed room: pages that came in, by counters.
//!
//! A page is *back* if it was there before and was evicted (a refault), otherwise *new*. Room that reclaim made went
//! to pages that came in; what neither came back nor was read or written is anonymous memory that is new. So, in
//! pages:
//!
//! ```text
//! anon back  = workingset_refault_anon (5.9), else pswpin
//! file in    = pgpgin / 4 - pswpin
//! file back  = the smaller of file in and workingset_refault_file (3.15)
//! stolen     = pgsteal of everybody but memory.reclaim
//! anon new   = (stolen anon - anon back) + (stolen file - file in - nr_dirtied), either at least 0
//! file new   = the smaller of (file in - file back + nr_dirtied) and what is left of stolen
//! ```
//!
//! Before reclaim began, free memory took what came in; that needed no room, and is left out in this way.

/// Pages that needed room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inflow {
    /// Anonymous pages that came back.
    pub anon_back: u64,
    /// New anonymous pages.
    pub anon_new: u64,
    /// Pages of files that came back.
    pub file_back: u64,
    /// Pages of files that were read or written for the first time.
    pub file_new: u64,
    /// Pages of files that were read.
    pub file_in: u64,
    /// Pages that reclaim freed.
    pub stolen: u64,
    /// Whether the kernel counts refaults of files, so that `file_back` means something.
    pub counts_file_refaults: bool,
}

impl Inflow {
    /// By counters, each by its name; none if there is none of them.
    pub fn of(counter: &dyn Fn(&str) -> Option<u64>) -> Option<Inflow> {
        let sum = |names: &[&str]| {
            let known = names.iter().filter_map(|name| counter(name));
            known.reduce(u64::saturating_add)
        };
        let pswpin = counter("pswpin");
        let anon_back = counter("workingset_refault_anon").or(pswpin);
        let read = counter("pgpgin").map(|kb| kb / 4);
        if anon_back.is_none() && read.is_none() {
            return None;
        }
        let anon_back = anon_back.unwrap_or(0);
        let file_in = read.unwrap_or(0).saturating_sub(pswpin.unwrap_or(0));
        let refaults = sum(&["workingset_refault_file"]).or(counter("workingset_refault"));
        let file_back = refaults.unwrap_or(0).min(file_in);
        let written = counter("nr_dirtied").unwrap_or(0);
        let proactive = counter("pgsteal_proactive").unwrap_or(0);
        let by_kind = counter("pgsteal_anon").zip(counter("pgsteal_file"));
        let by_actor = sum(&["pgsteal_kswapd", "pgsteal_direct", "pgsteal_khugepaged"]);
        let (stolen, anon_new) = match by_kind {
            Some((anon, file)) => {
                let pushed = file.saturating_sub(file_in.saturating_add(written));
                (
                    anon.saturating_add(file).saturating_sub(proactive),
                    anon.saturating_sub(anon_back).saturating_add(pushed),
                )
            }
            None => {
                let out = counter("pswpout").unwrap_or(0);
                let stolen = by_actor.unwrap_or(0).max(out);
                let others = anon_back.saturating_add(file_in).saturating_add(written);
                let swapped = out.saturating_sub(anon_back);
                (stolen, stolen.saturating_sub(others).max(swapped))
            }
        };
        let fresh = stolen.saturating_sub(anon_back.saturating_add(file_back));
        let anon_new = anon_new.min(fresh);
        let file_new = file_in.saturating_sub(file_back).saturating_add(written);
        Some(Inflow {
            anon_back,
            anon_new,
            file_back,
            file_new: file_new.min(fresh - anon_new),
            file_in,
            stolen,
            counts_file_refaults: refaults.is_some(),
        })
    }

    /// The same of a part of a capture, by what the whole of it says. Pages of files that leave in a part may have come in
    /// before it: what is taken for new anonymous memory there and is none in the whole was files'.
    pub(super) fn within(self, whole: Option<&Inflow>) -> Inflow {
        let most = whole.map_or(u64::MAX, |whole| whole.anon_new);
        let anon_new = self.anon_new.min(most);
        Inflow {
            anon_new,
            file_new: self.file_new.saturating_add(self.anon_new - anon_new),
            ..self
        }
    }

    /// The four parts: anon back, anon new, file back, file new.
    pub(super) fn parts(&self) -> [u64; 4] {
        [self.anon_back, self.anon_new, self.file_back, self.file_new]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counters: &[(&str, u64)]) -> Inflow {
        let counter = |name: &str| {
            let known = counters.iter().find(|(known, _)| *known == name);
            known.map(|(_, value)| *value)
        };
        Inflow::of(&counter).expect("counters")
    }

    /// A file of 700 MB read twice with 400 MB free: the first 400 MB needed no room.
    #[test]
    fn free_memory_takes_what_comes_first() {
        let inflow = of(&[
            ("pgpgin", 4 * 358_400),
            ("pswpin", 0),
            ("pgsteal_anon", 0),
            ("pgsteal_file", 256_000),
            ("workingset_refault_file", 179_200),
            ("workingset_refault_anon", 0),
        ]);
        assert_eq!(inflow.parts(), [0, 0, 179_200, 76_800]);
    }

    /// Memory is filled and gone through once more: all that was stolen and did not come back made room for new pages.
    #[test]
    fn what_does_not_come_back_made_room_for_new_pages() {
        let inflow = of(&[
            ("pgpgin", 4 * 1000),
            ("pswpin", 1000),
            ("pswpout", 1300),
            ("pgsteal_anon", 1250),
            ("pgsteal_file", 40),
            ("workingset_refault_anon", 990),
        ]);
        assert_eq!(inflow.parts(), [990, 300, 0, 0]);
    }

    /// Counters of 3.6: neither kinds nor refaults.
    #[test]
    fn early_counters() {
        let inflow = of(&[
            ("pgpgin", 4 * 900),
            ("pswpin", 400),
            ("pswpout", 600),
            ("pgsteal_kswapd", 1000),
            ("pgsteal_direct", 100),
            ("nr_dirtied", 0),
        ]);
        assert_eq!(inflow.parts(), [400, 200, 0, 500]);
        assert!(!inflow.counts_file_refaults);
    }

    /// A file is written, and its pages go in the second after: over both no memory is new.
    #[test]
    fn what_leaves_later_than_it_came_is_no_new_memory() {
        let counters = |dirtied, stolen| {
            of(&[
                ("pgpgin", 0),
                ("pswpin", 0),
                ("nr_dirtied", dirtied),
                ("pgsteal_anon", 0),
                ("pgsteal_file", stolen),
            ])
        };
        let (whole, second) = (counters(900, 700), counters(100, 600));
        assert_eq!(second.parts(), [0, 500, 0, 100]);
        assert_eq!(second.within(Some(&whole)).parts(), [0, 0, 0, 600]);
        assert_eq!(second.within(None).parts(), second.parts());
    }

    #[test]
    fn nothing_overflows() {
        let all = Inflow::of(&|_| Some(u64::MAX)).expect("counters");
        assert!(all.stolen >= all.anon_new);
        assert_eq!(Inflow::of(&|_| None), None);
    }
}

//! How an error of writeback gets to those who ask (`lib/errseq.c`, `mapping_set_error`).
//!
//! 1. Up to 4.12 the file has a flag. Whoever asks first, by fsync(2) or the like, gets the error, and nobody
//!    else.
//! 2. From 4.13 on errors are counted besides, and every open file remembers how many it has been told of:
//!    each gets an error once, at its next fsync(2).
//! 3. A file that is opened after an error that nobody has been told of knows nothing of it in 4.13 to 4.16;
//!    from 4.17 on it gets it too.

use crate::ids::InodeId;
use crate::kernel::WritebackErrors;
use crate::mm::Mm;
use crate::mm::types::Pfn;

/// Errors of a file (`AS_EIO` and `wb_err` of its mapping).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WritebackError {
    /// AS_EIO
    flag: bool,
    /// Errors that count: one that comes before anybody has seen the last is the same.
    count: u64,
    /// ERRSEQ_SEEN
    seen: bool,
}

impl WritebackError {
    fn set(&mut self) {
        self.flag = true;
        if self.seen || self.count == 0 {
            self.count += 1;
            self.seen = false;
        }
    }

    /// `errseq_sample`: what a file that is being opened has been told of.
    fn sample(&mut self, rule: WritebackErrors) -> u64 {
        match (rule, self.seen) {
            (WritebackErrors::EveryOpenFile, false) => 0,
            (WritebackErrors::EveryOpenFile, true) => self.count,
            (WritebackErrors::MappingFlag | WritebackErrors::OpenFile, _) => {
                self.seen = true;
                self.count
            }
        }
    }

    /// `filemap_check_errors`
    fn test_and_clear(&mut self) -> bool {
        std::mem::take(&mut self.flag)
    }

    /// `errseq_check_and_advance`: whether there is something that `told` does not know.
    fn check_and_advance(&mut self, told: &mut u64) -> bool {
        let news = self.count != *told;
        if news {
            self.seen = true;
            *told = self.count;
        }
        news
    }
}

impl Mm {
    /// `mapping_set_error`: the device did not take a page of a file. It is clean from now on, and what was
    /// written to it is lost.
    pub(crate) fn mapping_set_error(&mut self, pfn: Pfn) {
        let (inode, _) = self.file_of(&self.pages[pfn]);
        self.inodes[inode].error.set();
        self.nr_lost += 1;
    }

    /// What a file that is opened now has been told of.
    pub(crate) fn sample_errors(&mut self, inode: InodeId) -> u64 {
        let rule = self.kernel.mechanisms.writeback.writeback_errors;
        self.inodes[inode].error.sample(rule)
    }

    /// fsync(2) of a file that has been told of `told`: counts EIO.
    pub(crate) fn report_error(&mut self, inode: InodeId, told: &mut u64) {
        let error = &mut self.inodes[inode].error;
        let news = match self.kernel.mechanisms.writeback.writeback_errors {
            WritebackErrors::MappingFlag => error.test_and_clear(),
            WritebackErrors::OpenFile | WritebackErrors::EveryOpenFile => {
                error.test_and_clear();
                error.check_and_advance(told)
            }
        };
        self.nr_eio += u64::from(news);
    }

    /// sync_file_range(2), which looks at the flag in all kernels.
    pub(crate) fn report_flag(&mut self, inode: InodeId) {
        let error = &mut self.inodes[inode].error;
        self.nr_eio += u64::from(error.test_and_clear());
    }

    /// sync(2): the flag is gone, and nobody has been told.
    pub(crate) fn forget_error(&mut self, inode: InodeId) {
        self.inodes[inode].error.test_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_open_file_is_told_once() {
        let rule = WritebackErrors::EveryOpenFile;
        let mut error = WritebackError::default();
        let (mut first, mut second) = (error.sample(rule), error.sample(rule));
        error.set();
        error.set();
        let mut late = error.sample(rule);
        for told in [&mut first, &mut second, &mut late] {
            assert!(error.check_and_advance(told));
            assert!(!error.check_and_advance(told));
        }
        let mut later = error.sample(rule);
        assert!(!error.check_and_advance(&mut later), "others have seen it");
        error.set();
        assert!(error.check_and_advance(&mut first) && error.check_and_advance(&mut later));
    }

    #[test]
    fn who_opens_after_an_error_knows_nothing_in_4_13() {
        let mut error = WritebackError::default();
        error.set();
        let mut late = error.sample(WritebackErrors::OpenFile);
        assert!(!error.check_and_advance(&mut late));
        error.set();
        assert!(error.check_and_advance(&mut late));
    }
}

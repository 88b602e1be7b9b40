//! I/O of pages, whatever they hold: the memory that a bio takes, submission, the end of a request, and waiting for a
//! page.

pub(crate) mod bio;
mod end_io;
mod page_wait;
mod submit;

pub(in crate::mm) use page_wait::wait_on_locked_page;
pub(crate) use page_wait::{PageWaiters, wait_on_page};
pub(crate) use submit::submit;

//! What the processes of a run share: barriers, how many instances run, samples, turns through filesets.
//!
//! The state lies in two regions of shared memory, made before the first fork: words, on which a process
//! can wait, and numbers. [`Shared`] knows which is where.

use super::report::{self, Line};
use super::sys;
use rustix::thread::futex;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Samples that a process keeps before it writes them out: as many as fit into a line.
const BATCH: usize = 64;

/// Words of a barrier: how many have arrived, how often it has opened.
const BARRIER_WORDS: usize = 2;
/// Words of a task: instances that ended, instances that were started.
const TASK_WORDS: usize = 2;
/// Words of a process: answers to its requests, samples kept, batches written, threads ended.
const PROCESS_WORDS: usize = 4;
/// Numbers of a process: CPU times and faults that its threads have reported, and its samples.
const PROCESS_NUMBERS: usize = 4 + 3 * BATCH;

/// The shared state. Copies share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shared {
    words: &'static [AtomicU32],
    numbers: &'static [AtomicU64],
    tasks_at: usize,
    processes_at: usize,
    turns: usize,
}

/// How large the state is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) barriers: usize,
    pub(super) tasks: usize,
    /// Processes that the run can have.
    pub(super) processes: usize,
    /// Counters of turns, see [`Shared::turn`].
    pub(super) turns: usize,
}

impl Shared {
    pub(super) fn new(extent: Extent) -> io::Result<Shared> {
        let tasks_at = extent.barriers * BARRIER_WORDS;
        let processes_at = tasks_at + extent.tasks * TASK_WORDS;
        let words = processes_at + extent.processes * PROCESS_WORDS;
        let numbers = extent.turns + extent.processes * PROCESS_NUMBERS;
        Ok(Shared {
            words: sys::shared_words(words)?,
            numbers: sys::shared_numbers(numbers)?,
            tasks_at,
            processes_at,
            turns: extent.turns,
        })
    }

    /// pthread_barrier_wait(3) among processes and threads.
    pub(super) fn barrier_wait(&self, barrier: usize, parties: u64) {
        let arrived = &self.words[barrier * BARRIER_WORDS];
        let opened = &self.words[barrier * BARRIER_WORDS + 1];
        let before = opened.load(Ordering::Acquire);
        if u64::from(arrived.fetch_add(1, Ordering::AcqRel)) + 1 >= parties {
            arrived.store(0, Ordering::Release);
            opened.fetch_add(1, Ordering::AcqRel);
            wake_all(opened);
            return;
        }
        while opened.load(Ordering::Acquire) == before {
            wait(opened, before);
        }
    }

    /// Instances of a task that have ended.
    fn ended(&self, task: usize) -> &'static AtomicU32 {
        &self.words[self.tasks_at + task * TASK_WORDS]
    }

    /// Instances of a task that were started.
    pub(super) fn started(&self, task: usize) -> &'static AtomicU32 {
        &self.words[self.tasks_at + task * TASK_WORDS + 1]
    }

    /// So many instances of a task have ended.
    pub(super) fn note_ended(&self, task: usize, instances: u32) {
        self.ended(task).fetch_add(instances, Ordering::AcqRel);
        wake_all(self.ended(task));
    }

    /// Waits until every instance of a task that was started has ended.
    pub(super) fn wait_ended(&self, task: usize) {
        loop {
            let ended = self.ended(task).load(Ordering::Acquire);
            if ended >= self.started(task).load(Ordering::Acquire) {
                return;
            }
            wait(self.ended(task), ended);
        }
    }

    /// The next number of a counter.
    pub(super) fn turn(&self, counter: usize) -> u64 {
        self.numbers[counter].fetch_add(1, Ordering::Relaxed)
    }

    /// What belongs to a process.
    pub(super) fn process(&self, number: usize) -> Process {
        let words = self.processes_at + number * PROCESS_WORDS;
        let numbers = self.turns + number * PROCESS_NUMBERS;
        Process {
            number,
            words: &self.words[words..words + PROCESS_WORDS],
            numbers: &self.numbers[numbers..numbers + PROCESS_NUMBERS],
        }
    }
}

/// What belongs to one process. Its threads take turns; the coordinator looks at it when it is dead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process {
    pub(super) number: usize,
    words: &'static [AtomicU32],
    numbers: &'static [AtomicU64],
}

impl Process {
    /// Answers to this process's requests.
    pub(super) fn answers(&self) -> u32 {
        self.words[0].load(Ordering::Acquire)
    }

    /// Waits for an answer beyond the first `before`.
    pub(super) fn wait_answer(&self, before: u32) {
        while self.answers() == before {
            wait(&self.words[0], before);
        }
    }

    pub(super) fn answer(&self) {
        self.words[0].fetch_add(1, Ordering::AcqRel);
        wake_all(&self.words[0]);
    }

    /// Threads of this process that have reported their end.
    pub(super) fn threads_ended(&self) -> u32 {
        self.words[3].load(Ordering::Acquire)
    }

    /// A thread ends and has reported its usage.
    pub(super) fn thread_ended(&self, usage: &sys::Usage) {
        let usage = [
            usage.user_ns,
            usage.system_ns,
            usage.minor_faults,
            usage.major_faults,
        ];
        for (sum, more) in self.numbers.iter().zip(usage) {
            sum.fetch_add(more, Ordering::Relaxed);
        }
        self.words[3].fetch_add(1, Ordering::AcqRel);
    }

    /// What its threads have reported so far.
    pub(super) fn reported(&self) -> sys::Usage {
        let number = |at: usize| self.numbers[at].load(Ordering::Relaxed);
        sys::Usage {
            user_ns: number(0),
            system_ns: number(1),
            minor_faults: number(2),
            major_faults: number(3),
        }
    }

    /// Keeps a sample; writes the batch out when it is full. One thread at a time.
    pub(super) fn sample(&self, series: usize, end_ns: u64, value_ns: u64) -> io::Result<()> {
        let kept = self.words[1].load(Ordering::Acquire) as usize;
        for (at, value) in [series as u64, end_ns, value_ns].into_iter().enumerate() {
            self.numbers[4 + 3 * kept + at].store(value, Ordering::Relaxed);
        }
        self.words[1].store(kept as u32 + 1, Ordering::Release);
        match kept + 1 {
            BATCH => self.flush(),
            _ => Ok(()),
        }
    }

    /// Writes out the samples that are kept.
    pub(super) fn flush(&self) -> io::Result<()> {
        let kept = self.words[1].load(Ordering::Acquire) as usize;
        if kept == 0 {
            return Ok(());
        }
        let number = |at: usize| self.numbers[4 + at].load(Ordering::Relaxed);
        let samples =
            (0..kept.min(BATCH)).map(|k| (number(3 * k), number(3 * k + 1), number(3 * k + 2)));
        report::write(&Line::Samples {
            process: self.number,
            batch: self.words[2].load(Ordering::Acquire),
            samples: samples.collect(),
        })?;
        // Killed here, the process leaves a batch that the coordinator writes again under its number.
        self.words[1].store(0, Ordering::Release);
        self.words[2].fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

/// Sleeps while the word has this value, or less long: the caller looks again.
fn wait(word: &AtomicU32, value: u32) {
    let _ = futex::wait(word, futex::Flags::empty(), value, None);
}

fn wake_all(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::empty(), u32::MAX >> 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_opens_for_its_parties_again_and_again() {
        let shared = Shared::new(Extent {
            barriers: 1,
            tasks: 0,
            processes: 0,
            turns: 1,
        })
        .expect("shared memory");
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 0..100 {
                        shared.turn(0);
                        shared.barrier_wait(0, 3);
                        assert!(shared.numbers[0].load(Ordering::Relaxed) >= 3 * (round + 1));
                        shared.barrier_wait(0, 3);
                    }
                });
            }
        });
        assert_eq!(shared.turn(0), 300);
    }

    #[test]
    fn a_full_batch_fits_into_a_line() {
        let line = Line::Samples {
            process: usize::MAX,
            batch: u32::MAX,
            samples: vec![(u32::MAX.into(), u64::MAX, u64::MAX); BATCH],
        };
        assert!(line.to_bytes().len() <= report::LINE_BYTES_MAX);
    }
}

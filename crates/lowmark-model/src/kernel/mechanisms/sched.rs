//! CPUs: who runs next, and for how long.

macro_rules! sched {
    ($next:ident $($others:ident)*; $($before:tt)*) => {
        $next! { $($others)*;
            $($before)*
            /// Who is next on a CPU, and when it is taken away (`pick_next_entity`, `place_entity`, `check_preempt_tick`).
            fair_class: FairClass {
                /// Who has had least CPU time; a woken task takes the CPU from one that has had much more.
                Cfs = "cfs",
                /// Of those who have had no more than the average, who has the earliest deadline; what a task had
                /// more than others when it went to sleep is remembered.
                Eevdf = "eevdf",
                /// The same, but one that had more stays in the queue until it has made up for that.
                EevdfDelayed = "eevdf-delayed",
            }
            /// When a task makes room for another one (`TIF_NEED_RESCHED`, `TIF_NEED_RESCHED_LAZY`).
            preemption: Preemption {
                /// Where it has spent what it is spending.
                Prompt = "prompt",
                /// On its way back to user mode; elsewhere at the tick after the one, or the waking, that asks for it.
                Lazy = "lazy",
            }
            /// How far a deadline is away (`base_slice_ns`, for one CPU).
            base_slice: BaseSlice {
                /// 0.75 ms.
                Long = "750us",
                /// 0.7 ms.
                Short = "700us" needs(fair_class = FairClass::Eevdf | FairClass::EevdfDelayed),
            }
        }
    };
}

pub(super) use sched;

//! What happened, in order: as lines for a reader, and as one number that tells two runs apart.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use seckill_application::ports::Clock as _;
use seckill_memory::VirtualClock;

/// The trace of a run.
pub struct Trace {
    clock: Arc<VirtualClock>,
    state: Mutex<State>,
    prints: bool,
}

struct State {
    hash: Fnv,
    lines: u64,
}

/// FNV-1a: the same in every process and on every machine.
struct Fnv(u64);

impl fmt::Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

impl Trace {
    /// Nothing has happened. `prints` says whether lines go to standard output as well.
    pub fn new(clock: Arc<VirtualClock>, prints: bool) -> Self {
        let state = State {
            hash: Fnv(0xcbf2_9ce4_8422_2325),
            lines: 0,
        };
        Self {
            clock,
            state: Mutex::new(state),
            prints,
        }
    }

    /// Writes a line.
    pub fn note(&self, what: fmt::Arguments<'_>) {
        let at = self.clock.monotonic();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.lines += 1;
        let _ = writeln!(state.hash, "{} {what}", at.as_micros());
        if self.prints {
            println!("{:>9.3} {what}", at.as_secs_f64());
        }
    }

    /// The number of the trace so far, and how many lines it has.
    pub fn sum(&self) -> (u64, u64) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.hash.0, state.lines)
    }
}

/// Writes a line of the trace.
#[macro_export]
macro_rules! note {
    ($trace:expr, $($words:tt)+) => { $trace.note(format_args!($($words)+)) };
}

//! One fault, told to several callers.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use seckill_application::{Effect, Fault};

/// A fault that can be told again and again, with the same port, effect and cause.
pub(super) struct SameFault(Arc<Fault>);

impl SameFault {
    pub(super) fn new(fault: Fault) -> Self {
        Self(Arc::new(fault))
    }

    pub(super) fn again(&self) -> Fault {
        let (port, cause) = (self.0.port(), SameCause(self.0.clone()));
        match (self.0.effect(), self.0.is_retryable()) {
            (Effect::Unknown, _) => Fault::unknown(port, cause),
            (Effect::None, true) => Fault::unavailable(port, cause),
            (Effect::None, false) => Fault::broken(port, cause),
        }
    }
}

/// Reads like the cause of the fault behind it.
#[derive(Debug)]
struct SameCause(Arc<Fault>);

impl fmt::Display for SameCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.source() {
            Some(cause) => fmt::Display::fmt(cause, f),
            None => f.write_str("unknown cause"),
        }
    }
}

impl Error for SameCause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source().and_then(Error::source)
    }
}

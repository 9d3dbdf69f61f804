//! How far away a server is, and how reliably it is reached.

use std::time::Duration;

use rand::{Rng, RngExt as _};

/// A day on the network.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Weather {
    /// How long everything takes, each way.
    pub delay: Duration,
    /// By how much longer it may take.
    pub jitter: Duration,
    /// The share of packets that get lost, 0 to 1.
    pub loss: f64,
    /// How long it takes until a lost packet is sent again.
    pub retransmission: Duration,
    /// Whether nothing arrives at all.
    pub(super) held: bool,
}

impl Weather {
    /// Far away.
    pub fn far(delay: Duration) -> Self {
        Self {
            delay,
            ..Self::default()
        }
    }

    /// With more or less delay.
    #[must_use]
    pub fn unsteady(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }

    /// With this share of packets lost, each coming again this much later.
    #[must_use]
    pub fn lossy(mut self, loss: f64, retransmission: Duration) -> Self {
        (self.loss, self.retransmission) = (loss, retransmission);
        self
    }

    /// How late a packet is that is sent now, and whether it was lost at first.
    pub(super) fn lateness(&self, chance: &mut impl Rng) -> (Duration, bool) {
        let mut late = self.delay;
        if self.jitter > Duration::ZERO {
            late += self.jitter.mul_f64(chance.random::<f64>());
        }
        let lost = self.loss > 0.0 && chance.random_bool(self.loss);
        if lost {
            late += self.retransmission;
        }
        (late, lost)
    }
}

//! The gate with its decorators.

use std::sync::Arc;

use seckill_application::ports::{Clock, HotPath};
use seckill_decorators::{BatchSettings, BatchedGate, GateMeters, MeteredGate};

/// The hot store, with its gate counted and batched.
pub(super) struct DecoratedGate {
    pub(super) hot: HotPath,
    pub(super) meters: Arc<GateMeters>,
    pub(super) batches: Arc<BatchedGate>,
}

impl DecoratedGate {
    pub(super) fn around(hot: &HotPath, settings: BatchSettings, clock: &Arc<dyn Clock>) -> Self {
        let meters = Arc::new(GateMeters::default());
        let metered = MeteredGate::new(hot.gate.clone(), clock.clone(), meters.clone());
        let batches = BatchedGate::new(Arc::new(metered), clock.clone(), settings);
        let batches = Arc::new(batches);
        Self {
            hot: HotPath {
                gate: batches.clone(),
                ..hot.clone()
            },
            meters,
            batches,
        }
    }
}

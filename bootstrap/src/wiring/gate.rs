//! The gate with its decorators.

use std::sync::Arc;

use seckill_application::ports::{Clock, HotPath};
use seckill_decorators::{
    BatchSettings, BatchedGate, GateMeters, MeteredGate, SoldOutGate, SoldOutSettings,
};

/// How the gate is decorated.
#[derive(Debug, Clone, Copy, Default)]
pub struct GateSettings {
    /// How attempts are batched.
    pub batches: BatchSettings,
    /// When buyers are turned away without asking.
    pub sold_out: SoldOutSettings,
}

/// The hot store, with its gate counted and batched, and not asked for what it has sold out.
pub(super) struct DecoratedGate {
    pub(super) hot: HotPath,
    pub(super) meters: Arc<GateMeters>,
    pub(super) batches: Arc<BatchedGate>,
    pub(super) sold_out: Arc<SoldOutGate>,
}

impl DecoratedGate {
    pub(super) fn around(hot: &HotPath, settings: GateSettings, clock: &Arc<dyn Clock>) -> Self {
        let meters = Arc::new(GateMeters::default());
        let metered = MeteredGate::new(hot.gate.clone(), clock.clone(), meters.clone());
        let batches = BatchedGate::new(Arc::new(metered), clock.clone(), settings.batches);
        let batches = Arc::new(batches);
        let sold_out = SoldOutGate::new(batches.clone(), clock.clone(), settings.sold_out);
        let sold_out = Arc::new(sold_out);
        Self {
            hot: HotPath {
                gate: sold_out.clone(),
                ..hot.clone()
            },
            meters,
            batches,
            sold_out,
        }
    }
}

//! The outbox of gate updates.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::GateUpdates;
use seckill_domain::{GateUpdate, GateVersion, VoucherId};

use super::MemoryLedger;
use crate::chaos::at_most;

const UPDATES_MAX: usize = 100;
const VOUCHERS_MAX: usize = 1_000;

#[async_trait]
impl GateUpdates for MemoryLedger {
    async fn after(
        &self,
        voucher: VoucherId,
        after: GateVersion,
        max: usize,
    ) -> Result<Vec<GateUpdate>, Fault> {
        const AFTER: &str = "gate_updates.after";
        at_most(AFTER, max, UPDATES_MAX)?;
        let call = self.shared.chaos.enter(AFTER)?;
        let state = self.state();
        let updates = state.book.outbox.get(&voucher);
        let after = updates.into_iter().flat_map(|updates| {
            let newer = updates.range(after.next()..).take(max);
            newer.map(|(_, (_, update))| update.clone())
        });
        call.answer(after.collect())
    }

    async fn waiting(&self, max: usize) -> Result<Vec<VoucherId>, Fault> {
        const WAITING: &str = "gate_updates.waiting";
        at_most(WAITING, max, VOUCHERS_MAX)?;
        let call = self.shared.chaos.enter(WAITING)?;
        let state = self.state();
        let mut waiting: Vec<(u64, VoucherId)> = state
            .book
            .outbox
            .iter()
            .filter_map(|(voucher, updates)| {
                let (place, _) = updates.values().next()?;
                Some((*place, *voucher))
            })
            .collect();
        drop(state);
        waiting.sort_unstable();
        waiting.truncate(max);
        call.answer(waiting.into_iter().map(|(_, voucher)| voucher).collect())
    }

    async fn forget(&self, voucher: VoucherId, up_to: GateVersion) -> Result<(), Fault> {
        let call = self.shared.chaos.enter("gate_updates.forget")?;
        let mut state = self.state();
        if let Some(updates) = state.book.outbox.get_mut(&voucher) {
            updates.retain(|version, _| *version > up_to);
            if updates.is_empty() {
                state.book.outbox.remove(&voucher);
            }
        }
        drop(state);
        call.answer(())
    }
}

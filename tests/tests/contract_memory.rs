//! The in-memory adapters keep the contract of every port.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seckill_application::ports::{Clock as _, HotPath, LedgerPorts};
use seckill_domain::{Partitions, Timestamp, VoucherId};
use seckill_memory::{HotPathOptions, MemoryHotPath, MemoryLedger, Piece, VirtualClock};
use seckill_tests::contract::{BACKLOG_LIMIT, Harm, HotHarness, LedgerHarness, PARTITIONS};
use seckill_tests::stack;

const START: Timestamp = Timestamp::from_millis(1_796_000_000_000);

struct HotStand {
    store: MemoryHotPath,
    ports: HotPath,
    clock: Arc<VirtualClock>,
    partitions: Partitions,
}

fn hot_stand() -> Ready<Option<HotStand>> {
    stack::memory();
    let clock = Arc::new(VirtualClock::new(START));
    let partitions = Partitions::new(PARTITIONS.try_into().expect("not zero"));
    let options = HotPathOptions {
        backlog_limit: BACKLOG_LIMIT,
        ..HotPathOptions::new(partitions)
    };
    let store = MemoryHotPath::new(options, clock.clone());
    ready(Some(HotStand {
        ports: store.ports(),
        store,
        clock,
        partitions,
    }))
}

#[async_trait]
impl HotHarness for HotStand {
    fn hot(&self) -> &HotPath {
        &self.ports
    }

    async fn another_process(&self) -> HotPath {
        self.store.ports()
    }

    async fn gate_time(&self) -> Timestamp {
        self.clock.now()
    }

    async fn elapse(&self, time: Duration) {
        self.clock.advance(time);
    }

    async fn harm(&self, harm: Harm) {
        match harm {
            Harm::Wipe => self.store.wipe(),
            Harm::Lose { voucher, piece } => {
                let mut pieces = self.all_pieces(voucher).into_iter();
                let lost = pieces.find(|(name, _)| *name == piece);
                self.store.delete(lost.expect("a piece of this store").1);
            }
            Harm::LoseGroup(partition) => assert!(self.store.delete(Piece::Group(partition))),
            Harm::LoseStream(partition) => assert!(self.store.delete(Piece::Stream(partition))),
            Harm::PlantEntry { partition, fields } => {
                let planted = self.store.plant_entry(partition, &format!("{fields:?}"));
                assert!(planted.is_some());
            }
            Harm::PlantUnits { voucher, units } => {
                assert!(self.store.plant_units(voucher, units));
            }
        }
    }

    async fn pieces(&self, voucher: VoucherId) -> Vec<String> {
        self.all_pieces(voucher)
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    }
}

impl HotStand {
    fn all_pieces(&self, voucher: VoucherId) -> Vec<(String, Piece)> {
        let partition = self.partitions.of(voucher);
        [
            Piece::Sale(voucher),
            Piece::Holders(voucher),
            Piece::Waiters(voucher),
            Piece::Keys(voucher),
            Piece::Meta(partition),
            Piece::Stream(partition),
            Piece::Group(partition),
            Piece::Decided(partition),
        ]
        .map(|piece| (format!("{piece:?}"), piece))
        .to_vec()
    }
}

struct LedgerStand {
    ledger: MemoryLedger,
    ports: LedgerPorts,
    clock: Arc<VirtualClock>,
}

fn ledger_stand() -> Ready<Option<LedgerStand>> {
    stack::memory();
    let clock = Arc::new(VirtualClock::new(START));
    let partitions = Partitions::new(PARTITIONS.try_into().expect("not zero"));
    let ledger = MemoryLedger::new(clock.clone(), partitions);
    ready(Some(LedgerStand {
        ports: ledger.ports(),
        ledger,
        clock,
    }))
}

#[async_trait]
impl LedgerHarness for LedgerStand {
    fn ledger(&self) -> &LedgerPorts {
        &self.ports
    }

    async fn another_process(&self) -> LedgerPorts {
        self.ledger.ports()
    }

    async fn elapse(&self, time: Duration) {
        self.clock.advance(time);
    }
}

mod gate_answers {
    seckill_tests::gate_answers!(super::hot_stand);
}

mod gate_batches {
    seckill_tests::gate_batches!(super::hot_stand);
}

mod gate_follow {
    seckill_tests::gate_follow!(super::hot_stand);
}

mod gate_reads {
    seckill_tests::gate_reads!(super::hot_stand);
}

mod gate_stock {
    seckill_tests::gate_stock!(super::hot_stand);
}

mod gate_waitlist {
    seckill_tests::gate_waitlist!(super::hot_stand);
}

mod gate_keys {
    seckill_tests::gate_keys!(super::hot_stand);
}

mod gate_promotion {
    seckill_tests::gate_promotion!(super::hot_stand);
}

mod gate_window {
    seckill_tests::gate_window!(super::hot_stand);
}

mod loader_epochs {
    seckill_tests::loader_epochs!(super::hot_stand);
}

mod loader_tokens {
    seckill_tests::loader_tokens!(super::hot_stand);
}

mod loader_contents {
    seckill_tests::loader_contents!(super::hot_stand);
}

mod loader_losses {
    seckill_tests::loader_losses!(super::hot_stand);
}

mod loader_offers {
    seckill_tests::loader_offers!(super::hot_stand);
}

mod loader_survivors {
    seckill_tests::loader_survivors!(super::hot_stand);
}

mod leases {
    seckill_tests::leases!(super::hot_stand);
}

mod order_ids {
    seckill_tests::order_ids!(super::hot_stand);
}

mod stream_reading {
    seckill_tests::stream_reading!(super::hot_stand);
}

mod stream_upkeep {
    seckill_tests::stream_upkeep!(super::hot_stand);
}

mod gate_model {
    seckill_tests::gate_model!(super::hot_stand);
}

mod ledger_adjustments {
    seckill_tests::ledger_adjustments!(super::ledger_stand);
}

mod ledger_grants {
    seckill_tests::ledger_grants!(super::ledger_stand);
}

mod ledger_orders {
    seckill_tests::ledger_orders!(super::ledger_stand);
}

mod ledger_parking {
    seckill_tests::ledger_parking!(super::ledger_stand);
}

mod ledger_positions {
    seckill_tests::ledger_positions!(super::ledger_stand);
}

mod ledger_reads {
    seckill_tests::ledger_reads!(super::ledger_stand);
}

mod ledger_vouchers {
    seckill_tests::ledger_vouchers!(super::ledger_stand);
}

mod ledger_waitlist {
    seckill_tests::ledger_waitlist!(super::ledger_stand);
}

mod gate_updates {
    seckill_tests::gate_updates!(super::ledger_stand);
}

mod delay_queue {
    seckill_tests::delay_queue!(super::hot_stand);
}

mod gate_holders {
    seckill_tests::gate_holders!(super::hot_stand);
}

mod gate_repairs {
    seckill_tests::gate_repairs!(super::hot_stand);
}

mod notices {
    seckill_tests::notices!(super::hot_stand);
}

mod event_outbox {
    seckill_tests::event_outbox!(super::ledger_stand);
}

mod ledger_life {
    seckill_tests::ledger_life!(super::ledger_stand);
}

mod money_movements {
    seckill_tests::money_movements!(super::ledger_stand);
}

mod parked_messages {
    seckill_tests::parked_messages!(super::ledger_stand);
}

mod reconciliations {
    seckill_tests::reconciliations!(super::ledger_stand);
}

mod ledger_events {
    seckill_tests::ledger_events!(super::ledger_stand);
}

mod parked_discards {
    seckill_tests::parked_discards!(super::ledger_stand);
}

mod parked_replays {
    seckill_tests::parked_replays!(super::ledger_stand);
}

mod reconciliation_reports {
    seckill_tests::reconciliation_reports!(super::ledger_stand);
}

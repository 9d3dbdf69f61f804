//! The in-memory adapters keep the contract of every port.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seckill_application::ports::{Clock as _, HotPath, LedgerPorts, PurchaseGate};
use seckill_decorators::{BatchSettings, BatchedGate, MeteredGate, SoldOutGate, SoldOutSettings};
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

/// The gate of the store, inside everything that decorates it.
async fn decorated_stand() -> Option<HotStand> {
    let mut stand = hot_stand().await?;
    stand.ports.gate = decorated(stand.ports.gate, stand.clock.clone());
    Some(stand)
}

fn decorated(gate: Arc<dyn PurchaseGate>, clock: Arc<VirtualClock>) -> Arc<dyn PurchaseGate> {
    let metered = MeteredGate::new(gate, clock.clone(), Arc::default());
    let settings = BatchSettings::default();
    let batched = BatchedGate::new(Arc::new(metered), clock.clone(), settings);
    // Eager, so that it has something to say in scenarios of a few buyers.
    let settings = SoldOutSettings {
        rejections_min: 1,
        ..SoldOutSettings::default()
    };
    Arc::new(SoldOutGate::new(Arc::new(batched), clock, settings))
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

seckill_tests::hot_path_contract!(crate::hot_stand);
seckill_tests::ledger_contract!(crate::ledger_stand);

/// As the service has it: the gate counts what it answers, and attempts go together.
mod decorated {
    seckill_tests::purchase_gate_contract!(crate::decorated_stand);
}

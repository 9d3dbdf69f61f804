//! The grants and places that this process answered and that the ledger does not have yet.
//!
//! If Redis loses acknowledged writes, these are what is left of them: they are offered again
//! before the gate reopens (promise I4).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seckill_domain::{
    Attempt, Claim, Epoch, OrderId, PartitionId, Partitions, Seat, Ticket, VoucherId,
};

use crate::ports::{
    Clock, GateLoader, HotPath, LOAD_CHUNK_MAX, Ledger, LedgerPorts, Offered, PartitionState,
};
use crate::{Fault, Meters, WantedSales};

/// Most answers remembered; beyond it the only protection is the stream.
const REMEMBERED_MAX: usize = 1_000_000;
/// An answer younger than this is not asked after: the order writer is about to store it.
const SETTLE_AFTER: Duration = Duration::from_millis(300);

/// Remembers grants and places until the ledger has them. One per process.
pub struct RememberedAnswers {
    loader: Arc<dyn GateLoader>,
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    wanted: Arc<WantedSales>,
    meters: Arc<Meters>,
    partitions: Partitions,
    answers: Mutex<HashMap<OrderId, Remembered>>,
    epochs: Mutex<HashMap<PartitionId, Epoch>>,
}

struct Remembered {
    voucher: VoucherId,
    answer: Answer,
    since: Duration,
}

enum Answer {
    Grant(Claim),
    Place(Seat),
}

/// What is remembered of one voucher.
#[derive(Default)]
struct OfVoucher {
    claims: Vec<Claim>,
    seats: Vec<Seat>,
}

impl RememberedAnswers {
    /// Remembers nothing yet.
    pub fn new(
        hot: &HotPath,
        ledger: &LedgerPorts,
        clock: Arc<dyn Clock>,
        wanted: Arc<WantedSales>,
        meters: Arc<Meters>,
        partitions: Partitions,
    ) -> Self {
        Self {
            loader: hot.loader.clone(),
            ledger: ledger.ledger.clone(),
            clock,
            wanted,
            meters,
            partitions,
            answers: Mutex::default(),
            epochs: Mutex::default(),
        }
    }

    /// Remembers a grant that is about to be answered.
    pub fn remember_grant(&self, claim: Claim) {
        self.remember(claim.order, claim.voucher, Answer::Grant(claim));
    }

    /// Remembers a place that is about to be answered.
    pub fn remember_seat(&self, voucher: VoucherId, attempt: &Attempt, ticket: Ticket) {
        let seat = Seat {
            ticket,
            order: attempt.order,
            buyer: attempt.buyer,
            quantity: attempt.quantity,
            key: attempt.key.clone(),
        };
        self.remember(seat.order, voucher, Answer::Place(seat));
    }

    fn remember(&self, order: OrderId, voucher: VoucherId, answer: Answer) {
        let since = self.clock.monotonic();
        let mut answers = self.answers();
        if answers.len() < REMEMBERED_MAX {
            let remembered = Remembered {
                voucher,
                answer,
                since,
            };
            answers.insert(order, remembered);
        }
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<OrderId, Remembered>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many answers the ledger is not known to have.
    pub fn len(&self) -> usize {
        self.answers().len()
    }

    /// Whether every answer is known to be in the ledger.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets what the ledger has by now. Bounded: at most 20 reads of 1,000.
    pub async fn settle(&self) -> Result<(), Fault> {
        for chunk in self.due().chunks(LOAD_CHUNK_MAX).take(20) {
            let stored = self.ledger.stages(chunk).await?;
            let mut answers = self.answers();
            for (order, _) in stored {
                answers.remove(&order);
            }
        }
        Ok(())
    }

    fn due(&self) -> Vec<OrderId> {
        let now = self.clock.monotonic();
        let old = |it: &Remembered| now.saturating_sub(it.since) >= SETTLE_AFTER;
        self.answers()
            .iter()
            .filter(|(_, it)| old(it))
            .map(|(order, _)| *order)
            .collect()
    }

    /// Offers every remembered answer of the partitions that began a new epoch since the last call.
    pub async fn offer(&self) -> Result<(), Fault> {
        for partition in self.partitions.all() {
            let PartitionState::Open { epoch, .. } = self.loader.partition(partition).await? else {
                continue;
            };
            let seen = self.seen(partition);
            if seen == Some(epoch) {
                continue;
            }
            if seen.is_some() && !self.offer_partition(partition).await? {
                continue;
            }
            let mut epochs = self.epochs.lock().unwrap_or_else(PoisonError::into_inner);
            epochs.insert(partition, epoch);
        }
        Ok(())
    }

    fn seen(&self, partition: PartitionId) -> Option<Epoch> {
        let epochs = self.epochs.lock().unwrap_or_else(PoisonError::into_inner);
        epochs.get(&partition).copied()
    }

    /// Whether every answer of the partition was taken.
    async fn offer_partition(&self, partition: PartitionId) -> Result<bool, Fault> {
        let mut all_taken = true;
        for (voucher, of_voucher) in self.of_partition(partition) {
            for claims in of_voucher.claims.chunks(LOAD_CHUNK_MAX) {
                all_taken &= self.offer_some(voucher, claims, &[]).await?;
            }
            for seats in of_voucher.seats.chunks(LOAD_CHUNK_MAX) {
                all_taken &= self.offer_some(voucher, &[], seats).await?;
            }
        }
        Ok(all_taken)
    }

    async fn offer_some(
        &self,
        voucher: VoucherId,
        claims: &[Claim],
        seats: &[Seat],
    ) -> Result<bool, Fault> {
        match self.loader.offer(voucher, claims, seats).await? {
            Offered::Taken => {
                self.meters.answers_offered.add(claims.len() + seats.len());
                Ok(true)
            }
            Offered::PartitionMissing => Ok(false),
            Offered::NotLoaded => {
                self.wanted.request(voucher);
                Ok(false)
            }
        }
    }

    /// What is remembered of a partition, the seats in order of arrival.
    fn of_partition(&self, partition: PartitionId) -> HashMap<VoucherId, OfVoucher> {
        let mut all: HashMap<VoucherId, OfVoucher> = HashMap::new();
        for it in self.answers().values() {
            if self.partitions.of(it.voucher) != partition {
                continue;
            }
            let of_voucher = all.entry(it.voucher).or_default();
            match &it.answer {
                Answer::Grant(claim) => of_voucher.claims.push(claim.clone()),
                Answer::Place(seat) => of_voucher.seats.push(seat.clone()),
            }
        }
        for of_voucher in all.values_mut() {
            of_voucher.claims.sort_unstable_by_key(|claim| claim.order);
            of_voucher.seats.sort_unstable_by_key(|seat| seat.ticket);
        }
        all
    }
}

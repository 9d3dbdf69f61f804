//! The grants and places that this process answered and that the ledger does not have yet.
//!
//! If Redis loses acknowledged writes, these are what is left of them: they are offered again
//! before the gate reopens, and whenever the ledger does not get them in time (promise I4).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seckill_domain::{
    Claim, Epoch, OrderId, PartitionId, Partitions, Seat, Sequence, Ticket, VoucherId,
};

use crate::ports::{
    AdmissionLedger, Clock, GateLoader, HotPath, LOAD_CHUNK_MAX, Ledger, LedgerPorts, Offered,
    PartitionState,
};
use crate::{Fault, Meters, WantedSales};

/// Most answers remembered; beyond it the only protection is the stream.
const REMEMBERED_MAX: usize = 1_000_000;
/// Most answers asked after at a time.
const SETTLED_MAX: usize = 20 * LOAD_CHUNK_MAX;
/// An answer younger than this is not asked after: the order writer is about to store it.
const SETTLE_AFTER: Duration = Duration::from_millis(300);

/// An answer that the ledger does not have after so long is offered to the gate, and again after as
/// long. A gate that lost nothing but decisions that the ledger does not have either begins no new
/// epoch: its numbers still continue the ledger's, and only whoever answered can tell. What the gate
/// knows it leaves alone.
const OFFER_AFTER: Duration = Duration::from_secs(2);

/// For so long after a partition began a new life, somebody may still be offering what he answered.
const OFFERED_WITHIN: Duration = Duration::from_secs(5);

/// Remembers grants and places until the ledger has them. One per process.
pub struct RememberedAnswers {
    loader: Arc<dyn GateLoader>,
    ledger: Arc<dyn Ledger>,
    admissions: Arc<dyn AdmissionLedger>,
    clock: Arc<dyn Clock>,
    wanted: Arc<WantedSales>,
    meters: Arc<Meters>,
    partitions: Partitions,
    /// Oldest first, and the same in every run of a simulation.
    answers: Mutex<BTreeMap<OrderId, Remembered>>,
    lives: Mutex<HashMap<PartitionId, Life>>,
}

/// The life of a partition that this process knows.
#[derive(Clone, Copy)]
struct Life {
    epoch: Epoch,
    /// When it was seen to follow another one.
    renewed: Option<Duration>,
}

struct Remembered {
    voucher: VoucherId,
    answer: Answer,
    /// When it was answered, or offered last.
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
            admissions: ledger.admissions.clone(),
            clock,
            wanted,
            meters,
            partitions,
            answers: Mutex::default(),
            lives: Mutex::default(),
        }
    }

    /// Remembers a grant that is about to be answered.
    pub fn remember_grant(&self, claim: Claim) {
        self.remember(claim.order, claim.voucher, Answer::Grant(claim));
    }

    /// Remembers a place that is about to be answered.
    pub fn remember_place(&self, claim: Claim, ticket: Ticket) {
        let seat = Seat {
            ticket,
            order: claim.order,
            buyer: claim.buyer,
            quantity: claim.quantity,
            key: claim.key,
        };
        self.remember(seat.order, claim.voucher, Answer::Place(seat));
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
            answers.entry(order).or_insert(remembered);
        }
    }

    fn answers(&self) -> MutexGuard<'_, BTreeMap<OrderId, Remembered>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a grant the key that it was asked for with, if it has lost it and that is remembered.
    pub fn complete(&self, claim: &mut Claim) {
        if claim.key.is_some() {
            return;
        }
        if let Some(Answer::Grant(answered)) = self.answers().get(&claim.order).map(|it| &it.answer)
            && answered.buyer == claim.buyer
        {
            claim.key.clone_from(&answered.key);
        }
    }

    /// How many answers the ledger is not known to have.
    pub fn len(&self) -> usize {
        self.answers().len()
    }

    /// Whether every answer is known to be in the ledger.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets what the ledger has by now, and offers what it should have by now. Bounded: at most
    /// 20 reads of 1,000, and one offer of 1,000. A ledger that is behind is not asked about all
    /// that it cannot have yet: it takes a partition's decisions in their order.
    pub async fn settle(&self) -> Result<(), Fault> {
        let mut missing = Vec::new();
        let mut behind = HashSet::new();
        let mut due = self.due().into_iter();
        loop {
            let asked: Vec<OrderId> = due
                .by_ref()
                .filter(|(_, partition)| !behind.contains(partition))
                .map(|(order, _)| order)
                .take(LOAD_CHUNK_MAX)
                .collect();
            if asked.is_empty() {
                break;
            }
            let stored = self.ledger.stages(&asked).await?;
            let stored: Vec<OrderId> = stored.into_iter().map(|(order, _)| order).collect();
            behind.extend(self.forget(&asked, &stored));
            missing.extend(self.overdue(&asked));
        }
        missing.truncate(LOAD_CHUNK_MAX);
        self.offer_overdue(missing).await
    }

    /// Forgets what is stored. The partitions of which nothing that was asked after is.
    fn forget(&self, asked: &[OrderId], stored: &[OrderId]) -> HashSet<PartitionId> {
        let mut answers = self.answers();
        let partition = |answer: &Remembered| self.partitions.of(answer.voucher);
        let of_asked = asked.iter().filter_map(|order| answers.get(order));
        let mut behind: HashSet<PartitionId> = of_asked.map(partition).collect();
        for order in stored {
            if let Some(answer) = answers.remove(order) {
                behind.remove(&partition(&answer));
            }
        }
        behind
    }

    /// Those that the ledger should have by now.
    fn overdue(&self, asked: &[OrderId]) -> Vec<OrderId> {
        let (answers, now) = (self.answers(), self.clock.monotonic());
        let is_overdue = |order: &&OrderId| {
            let left = answers.get(order);
            left.is_some_and(|it| it.is_older(OFFER_AFTER, now))
        };
        asked.iter().filter(is_overdue).copied().collect()
    }

    /// What to ask the ledger about, the oldest first.
    fn due(&self) -> Vec<(OrderId, PartitionId)> {
        let now = self.clock.monotonic();
        self.answers()
            .iter()
            .filter(|(_, it)| it.is_older(SETTLE_AFTER, now))
            .map(|(order, it)| (*order, self.partitions.of(it.voucher)))
            .take(SETTLED_MAX)
            .collect()
    }

    /// Offers answers that the ledger was just found not to have.
    async fn offer_overdue(&self, orders: Vec<OrderId>) -> Result<(), Fault> {
        if orders.is_empty() {
            return Ok(());
        }
        let now = self.clock.monotonic();
        let mut overdue = BTreeMap::new();
        for order in orders {
            if let Some(answer) = self.answers().get_mut(&order) {
                answer.since = now;
                answer.add_to(&mut overdue);
            }
        }
        self.offer_all(overdue).await.map(|_| ())
    }

    /// Offers every remembered answer of the partitions that began a new epoch since the last call.
    pub async fn offer(&self) -> Result<(), Fault> {
        for partition in self.partitions.all() {
            let PartitionState::Open { epoch, .. } = self.loader.partition(partition).await? else {
                continue;
            };
            let known = self.life(partition);
            if known.is_some_and(|life| life.epoch == epoch) {
                continue;
            }
            if known.is_some() && !self.offer_partition(partition).await? {
                continue;
            }
            let renewed = known.map(|_| self.clock.monotonic());
            let mut lives = self.lives.lock().unwrap_or_else(PoisonError::into_inner);
            lives.insert(partition, Life { epoch, renewed });
        }
        Ok(())
    }

    /// The life of a partition that this process has seen last.
    fn life(&self, partition: PartitionId) -> Option<Life> {
        let lives = self.lives.lock().unwrap_or_else(PoisonError::into_inner);
        lives.get(&partition).copied()
    }

    /// Whether an order may come back that neither gate nor ledger know: a partition has lost its
    /// life, or has begun another one just now. Whoever answered is about to offer it.
    pub async fn may_come_back(&self) -> Result<bool, Fault> {
        for partition in self.partitions.all() {
            let known = self.life(partition);
            let unsure = match (self.loader.partition(partition).await?, known) {
                (PartitionState::Missing, None) => self.was_used(partition).await?,
                (PartitionState::Missing, Some(_)) => true,
                (PartitionState::Open { .. }, None) => false,
                (PartitionState::Open { epoch, .. }, Some(life)) => {
                    life.epoch != epoch || life.is_new(self.clock.monotonic())
                }
            };
            if unsure {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether anything was ever decided in a partition, for all the ledger knows.
    async fn was_used(&self, partition: PartitionId) -> Result<bool, Fault> {
        let head = self.admissions.head(partition).await?;
        Ok(head.applied > Sequence::new(0))
    }

    /// Whether every answer of the partition was taken.
    async fn offer_partition(&self, partition: PartitionId) -> Result<bool, Fault> {
        let mut of_partition = BTreeMap::new();
        for answer in self.answers().values() {
            if self.partitions.of(answer.voucher) == partition {
                answer.add_to(&mut of_partition);
            }
        }
        self.offer_all(of_partition).await
    }

    /// Whether every answer was taken. Seats are offered in order of arrival.
    async fn offer_all(&self, answers: BTreeMap<VoucherId, OfVoucher>) -> Result<bool, Fault> {
        let mut all_taken = true;
        for (voucher, mut of_voucher) in answers {
            of_voucher.seats.sort_unstable_by_key(|seat| seat.ticket);
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
            Offered::NotLoaded => self.lose_if_retired(voucher, claims, seats).await,
        }
    }

    /// What a sale that has left the gate for good cannot take back is lost, and whoever was told
    /// of it reads so. Any other sale has to be loaded first.
    async fn lose_if_retired(
        &self,
        voucher: VoucherId,
        claims: &[Claim],
        seats: &[Seat],
    ) -> Result<bool, Fault> {
        let found = self.ledger.voucher(voucher).await?;
        if !found.is_some_and(|found| found.retired) {
            self.wanted.request(voucher);
            return Ok(false);
        }
        let seats = seats.iter().cloned().map(|seat| seat.into_claim(voucher));
        let lost: Vec<Claim> = claims.iter().cloned().chain(seats).collect();
        let reply = self.loader.lose(voucher, &lost).await?;
        Ok(reply == Offered::Taken)
    }
}

impl Life {
    fn is_new(&self, now: Duration) -> bool {
        self.renewed
            .is_some_and(|at| now.saturating_sub(at) < OFFERED_WITHIN)
    }
}

impl Remembered {
    fn is_older(&self, age: Duration, now: Duration) -> bool {
        now.saturating_sub(self.since) >= age
    }

    fn add_to(&self, all: &mut BTreeMap<VoucherId, OfVoucher>) {
        let of_voucher = all.entry(self.voucher).or_default();
        match &self.answer {
            Answer::Grant(claim) => of_voucher.claims.push(claim.clone()),
            Answer::Place(seat) => of_voucher.seats.push(seat.clone()),
        }
    }
}

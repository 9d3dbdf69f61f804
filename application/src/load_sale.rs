//! Loads a voucher into the gate, or rebuilds it there. The steps are those of
//! [`GateLoader`](crate::ports::GateLoader).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use seckill_domain::{
    Claim, Epoch, OrderId, OrderStatus, Partitions, SaleStatus, Seat, Sequence, Ticket, VoucherId,
};

use crate::ports::{
    AdmissionLedger, Clock, DelayQueue, GateLoader, GateUpdates, HotPath, LOAD_CHUNK_MAX, Ledger,
    LedgerPorts, LoadBegun, LoadStep, LoadToken, Opened, OrderIds, PurchaseGate, Reconciliations,
    SaleSnapshot,
};
use crate::{Fault, Meters, RecoverPartition};

/// How a load ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loaded {
    /// The sale is at the gate.
    Loaded,
    /// The ledger has no such voucher, or it is a draft or retired: nothing to load.
    NotOnSale,
    /// Somebody else is loading it, or was faster.
    Busy,
}

/// Most orders of one call of the delay queue.
const SCHEDULE_MAX: usize = 1_000;
/// How long the token of a loader that is gone keeps others away.
const TOKEN_TTL: Duration = Duration::from_secs(5);
/// How long the ledger may take to catch up before the load is given up for now.
const CATCH_UP_MAX: Duration = Duration::from_secs(30);
const CATCH_UP_PAUSE: Duration = Duration::from_millis(10);
/// How often it is asked whether what the ledger has to catch up with is still there.
const GONE_LOOK_EVERY: Duration = Duration::from_secs(1);

/// Loads sales.
pub struct LoadSale {
    gate: Arc<dyn PurchaseGate>,
    loader: Arc<dyn GateLoader>,
    order_ids: Arc<dyn OrderIds>,
    delays: Arc<dyn DelayQueue>,
    ledger: Arc<dyn Ledger>,
    admissions: Arc<dyn AdmissionLedger>,
    updates: Arc<dyn GateUpdates>,
    books: Arc<dyn Reconciliations>,
    recover: Arc<RecoverPartition>,
    clock: Arc<dyn Clock>,
    meters: Arc<Meters>,
    partitions: Partitions,
    /// What this process is loading. A command and a worker often want the same sale at the same
    /// moment; the later one must not find it missing before the other opens it, and close it after.
    under_way: Mutex<HashSet<VoucherId>>,
}

/// The right of this process to load a sale, given back when it is dropped.
struct Turn<'a> {
    of: &'a LoadSale,
    voucher: VoucherId,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut under_way = self
            .of
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        under_way.remove(&self.voucher);
    }
}

/// What the gate still holds of a sale and the ledger does not have.
#[derive(Default)]
struct Survived {
    /// Given to those who wait in the ledger, by their turns there.
    turns: Vec<(Option<Ticket>, Claim)>,
    grants: Vec<Claim>,
    seats: Vec<Seat>,
}

impl Survived {
    /// Holders and seats in the order in which they came, as far as anybody knows.
    fn in_order(mut self) -> (Vec<Claim>, Vec<Seat>) {
        self.turns
            .sort_unstable_by_key(|(ticket, claim)| (*ticket, claim.order));
        self.grants.sort_unstable_by_key(|claim| claim.order);
        self.seats.sort_unstable_by_key(|seat| seat.ticket);
        let turns = self.turns.into_iter().map(|(_, claim)| claim);
        (turns.chain(self.grants).collect(), self.seats)
    }
}

/// One load under way.
struct Load {
    voucher: VoucherId,
    token: LoadToken,
    epoch: Epoch,
    /// The decision that the ledger must have applied before the snapshot.
    target: Sequence,
}

impl LoadSale {
    /// Over these ports.
    pub fn new(
        hot: &HotPath,
        ledger: &LedgerPorts,
        recover: Arc<RecoverPartition>,
        clock: Arc<dyn Clock>,
        meters: Arc<Meters>,
        partitions: Partitions,
    ) -> Self {
        Self {
            gate: hot.gate.clone(),
            loader: hot.loader.clone(),
            order_ids: hot.order_ids.clone(),
            delays: hot.delays.clone(),
            ledger: ledger.ledger.clone(),
            admissions: ledger.admissions.clone(),
            updates: ledger.updates.clone(),
            books: ledger.reconciliations.clone(),
            recover,
            clock,
            meters,
            partitions,
            under_way: Mutex::default(),
        }
    }

    /// Loads a sale, unless the gate has it. `grace` is how long other processes get to offer the grants they remember;
    /// zero for a sale that nobody can have bought from yet. Safe to run anywhere at any time, and
    /// to give up at any point: what it began expires.
    pub async fn run(&self, voucher: VoucherId, grace: Duration) -> Result<Loaded, Fault> {
        let Some(_turn) = self.turn(voucher) else {
            return Ok(Loaded::Busy);
        };
        if self.is_loaded(voucher).await? {
            return Ok(Loaded::Loaded);
        }
        let Some(found) = self.ledger.voucher(voucher).await? else {
            return Ok(Loaded::NotOnSale);
        };
        if found.retired {
            // It has left the gate for good, and its marker is lost: nothing has to be followed.
            self.updates.forget(voucher, found.version).await?;
        }
        if found.retired || found.status == SaleStatus::Draft {
            return Ok(Loaded::NotOnSale);
        }
        if !self.recover.run(self.partitions.of(voucher)).await? {
            return Ok(Loaded::Busy);
        }
        let token = LoadToken(self.order_ids.next().await?.to_string());
        // Another process may have been faster while an id was waited for. Loading again would only
        // close an open gate.
        if self.is_loaded(voucher).await? {
            return Ok(Loaded::Loaded);
        }
        let (epoch, target) = match self.loader.begin_load(voucher, &token, TOKEN_TTL).await? {
            LoadBegun::Begun { epoch, sequence } => (epoch, sequence),
            LoadBegun::Busy | LoadBegun::PartitionMissing => return Ok(Loaded::Busy),
        };
        let mut load = Load {
            voucher,
            token,
            epoch,
            target,
        };
        let outcome = self.rebuild(&mut load, grace).await;
        if !matches!(outcome, Ok(Loaded::Loaded)) {
            // So that the next loader need not wait for the token to expire.
            self.loader.abandon(voucher, &load.token).await?;
        }
        outcome
    }

    fn turn(&self, voucher: VoucherId) -> Option<Turn<'_>> {
        let mut under_way = self
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        under_way
            .insert(voucher)
            .then(|| Turn { of: self, voucher })
    }

    async fn is_loaded(&self, voucher: VoucherId) -> Result<bool, Fault> {
        Ok(self
            .gate
            .facts(&[voucher])
            .await?
            .iter()
            .any(Option::is_some))
    }

    async fn rebuild(&self, load: &mut Load, grace: Duration) -> Result<Loaded, Fault> {
        if !self.append_survivors(load).await? {
            return Ok(Loaded::Busy);
        }
        self.clock.sleep(grace).await;
        let deadline = self.clock.monotonic() + CATCH_UP_MAX;
        let mut look_at = self.clock.monotonic() + GONE_LOOK_EVERY;
        loop {
            if !self.ledger_has(load).await? {
                let now = self.clock.monotonic();
                if now >= deadline {
                    let behind = "the ledger does not catch up; is an order writer running?";
                    return Err(Fault::unavailable("load_sale", behind));
                }
                if now >= look_at {
                    let partition = self.partitions.of(load.voucher);
                    self.recover.restart_if_gone(partition, load.epoch).await?;
                    look_at = now + GONE_LOOK_EVERY;
                }
                if !self.keep_token(load).await? {
                    return Ok(Loaded::Busy);
                }
                self.clock.sleep(CATCH_UP_PAUSE).await;
                continue;
            }
            let Some(snapshot) = self.ledger.sale_snapshot(load.voucher).await? else {
                return Ok(Loaded::NotOnSale);
            };
            match self.open(load, &snapshot).await? {
                Opened::Opened => return self.finish(load, &snapshot).await,
                Opened::NotMine => return Ok(Loaded::Busy),
                Opened::Behind(sequence) => load.target = sequence,
            }
        }
    }

    /// Puts on the stream what the gate still holds and nobody else has. Of those who were given their
    /// turns, who came first is written down first. `false` if the token is not ours any more.
    async fn append_survivors(&self, load: &mut Load) -> Result<bool, Fault> {
        let mut survivors = Survived::default();
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            let page = self.loader.survivors(load.voucher, at).await?;
            self.keep_unknown(&mut survivors, page.holders, page.seats)
                .await?;
            cursor = page.next;
            if cursor.is_some() && !self.keep_token(load).await? {
                return Ok(false);
            }
        }
        self.recover.complete(&mut survivors.grants);
        let (holders, seats) = survivors.in_order();
        for chunk in holders.chunks(LOAD_CHUNK_MAX) {
            if !self.append(load, chunk, &[]).await? {
                return Ok(false);
            }
        }
        for chunk in seats.chunks(LOAD_CHUNK_MAX) {
            if !self.append(load, &[], chunk).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn append(
        &self,
        load: &mut Load,
        holders: &[Claim],
        seats: &[Seat],
    ) -> Result<bool, Fault> {
        match self
            .loader
            .append_again(load.voucher, &load.token, holders, seats)
            .await?
        {
            LoadStep::Done(sequence) => load.target = load.target.max(sequence),
            LoadStep::NotMine => return Ok(false),
        }
        Ok(true)
    }

    /// Keeps what the ledger does not have: of the holders, those who wait in it, and were promoted
    /// since, as well.
    async fn keep_unknown(
        &self,
        survivors: &mut Survived,
        holders: Vec<Claim>,
        seats: Vec<Seat>,
    ) -> Result<(), Fault> {
        let of_holders = holders.iter().map(|claim| claim.order);
        let ids: Vec<OrderId> = of_holders.chain(seats.iter().map(|it| it.order)).collect();
        let stages = self.stages(&ids).await?;
        let (promoted, others): (Vec<_>, Vec<_>) = holders
            .into_iter()
            .partition(|claim| stages.get(&claim.order) == Some(&OrderStatus::Waiting));
        let tickets = self.tickets(&promoted).await?;
        let turn = |claim: Claim| (tickets.get(&claim.order).copied(), claim);
        survivors.turns.extend(promoted.into_iter().map(turn));
        let unknown = |claim: &Claim| !stages.contains_key(&claim.order);
        survivors.grants.extend(others.into_iter().filter(unknown));
        let unknown = |seat: &Seat| !stages.contains_key(&seat.order);
        survivors.seats.extend(seats.into_iter().filter(unknown));
        Ok(())
    }

    async fn stages(&self, ids: &[OrderId]) -> Result<HashMap<OrderId, OrderStatus>, Fault> {
        let mut stages = HashMap::with_capacity(ids.len());
        for chunk in ids.chunks(LOAD_CHUNK_MAX) {
            stages.extend(self.ledger.stages(chunk).await?);
        }
        Ok(stages)
    }

    /// The turns that the ledger has for them.
    async fn tickets(&self, claims: &[Claim]) -> Result<HashMap<OrderId, Ticket>, Fault> {
        let mut tickets = HashMap::with_capacity(claims.len());
        for chunk in claims.chunks(LOAD_CHUNK_MAX) {
            let ids: Vec<OrderId> = chunk.iter().map(|claim| claim.order).collect();
            let orders = self.books.orders(&ids).await?.into_iter();
            tickets.extend(orders.filter_map(|it| Some((it.claim.order, it.ticket?))));
        }
        Ok(tickets)
    }

    async fn ledger_has(&self, load: &Load) -> Result<bool, Fault> {
        let head = self
            .admissions
            .head(self.partitions.of(load.voucher))
            .await?;
        Ok(head.epoch == load.epoch && head.applied >= load.target)
    }

    async fn keep_token(&self, load: &Load) -> Result<bool, Fault> {
        let kept = self
            .loader
            .begin_load(load.voucher, &load.token, TOKEN_TTL)
            .await?;
        Ok(matches!(kept, LoadBegun::Begun { epoch, .. } if epoch == load.epoch))
    }

    async fn open(&self, load: &Load, snapshot: &SaleSnapshot) -> Result<Opened, Fault> {
        if snapshot.sale.applied < load.target {
            return Ok(Opened::Behind(load.target));
        }
        for (place, chunk) in snapshot.chunks.iter().enumerate() {
            let step = self
                .loader
                .load(load.voucher, &load.token, chunk, place)
                .await?;
            if step == LoadStep::NotMine {
                return Ok(Opened::NotMine);
            }
        }
        let chunks = snapshot.chunks.len();
        self.loader
            .open(load.voucher, &load.token, &snapshot.sale, chunks)
            .await
    }

    async fn finish(&self, load: &Load, snapshot: &SaleSnapshot) -> Result<Loaded, Fault> {
        let (voucher, free) = (load.voucher, snapshot.sale.free);
        self.meters.sales_loaded.add(1);
        if self.books.note_load(voucher).await? {
            self.meters.sales_reloaded.add(1);
            tracing::warn!(%voucher, free, version = %snapshot.sale.version,
                "the gate had lost this sale, or had it wrong; it has it again");
        } else {
            tracing::info!(%voucher, free, version = %snapshot.sale.version, "sale is at the gate");
        }
        self.updates
            .forget(load.voucher, snapshot.sale.version)
            .await?;
        self.schedule(snapshot).await;
        self.gate.promote(load.voucher).await?;
        Ok(Loaded::Loaded)
    }
    /// What lost the sale may have lost the delay queue as well. Once more is harmless: an order
    /// that is due twice is handled once. A fault here does not stop the load.
    async fn schedule(&self, snapshot: &SaleSnapshot) {
        for chunk in snapshot.due.chunks(SCHEDULE_MAX) {
            if let Err(fault) = self.delays.schedule(chunk).await {
                tracing::warn!(fault = fault.chain(), "left to the sweep");
            }
        }
    }
}

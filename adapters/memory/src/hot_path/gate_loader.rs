//! Loading and rebuilding the gate.

use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    EpochBegun, GateLoader, LOAD_CHUNK_MAX, LoadBegun, LoadChunk, LoadStep, LoadToken, Offered,
    OpenSale, Opened, PartitionState, Survivors,
};
use seckill_domain::{
    Claim, Decision, Epoch, PartitionId, Sale, Seat, Sequence, Timestamp, VoucherId,
};

use super::partition::{Decided, Journal, Live, Meta, Partition};
use super::slot::{Loading, Slot};
use super::store::Shared;
use super::stream::Stream;
use super::survivors;
use crate::chaos::at_most;

#[async_trait]
impl GateLoader for Shared {
    async fn partition(&self, partition: PartitionId) -> Result<PartitionState, Fault> {
        self.step("gate_loader.partition", partition, |partition, _| {
            partition.state()
        })
    }

    async fn begin_epoch(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        applied: Sequence,
    ) -> Result<EpochBegun, Fault> {
        self.step("gate_loader.begin_epoch", partition, |partition, _| {
            partition.begin_epoch(epoch, applied)
        })
    }

    async fn begin_load(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        ttl: Duration,
    ) -> Result<LoadBegun, Fault> {
        let partition = self.options.partitions.of(voucher);
        self.step("gate_loader.begin_load", partition, |partition, now| {
            partition.begin_load(voucher, token, ttl, now)
        })
    }

    async fn survivors(&self, voucher: VoucherId, cursor: u64) -> Result<Survivors, Fault> {
        let partition = self.options.partitions.of(voucher);
        self.step("gate_loader.survivors", partition, |partition, _| {
            let sale = partition
                .slots
                .get(&voucher)
                .and_then(|slot| slot.sale.as_ref());
            survivors::page(voucher, sale, cursor)
        })
    }

    async fn append_again(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        holders: &[Claim],
        seats: &[Seat],
    ) -> Result<LoadStep, Fault> {
        const APPEND_AGAIN: &str = "gate_loader.append_again";
        at_most(APPEND_AGAIN, holders.len(), LOAD_CHUNK_MAX)?;
        at_most(APPEND_AGAIN, seats.len(), LOAD_CHUNK_MAX)?;
        let partition = self.options.partitions.of(voucher);
        self.step(APPEND_AGAIN, partition, |partition, now| {
            partition.append_again(voucher, token, holders, seats, now)
        })
    }

    async fn load(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        chunk: &LoadChunk,
        place: usize,
    ) -> Result<LoadStep, Fault> {
        const LOAD: &str = "gate_loader.load";
        at_most(LOAD, chunk.holders.len(), LOAD_CHUNK_MAX)?;
        at_most(LOAD, chunk.seats.len(), LOAD_CHUNK_MAX)?;
        at_most(LOAD, chunk.keys.len(), LOAD_CHUNK_MAX)?;
        let partition = self.options.partitions.of(voucher);
        self.step(LOAD, partition, |partition, now| {
            let Some((mut journal, loading)) = partition.loading(voucher, token, now) else {
                return LoadStep::NotMine;
            };
            if place > loading.staged.len() {
                return LoadStep::NotMine;
            }
            loading.staged.truncate(place);
            loading.staged.push(chunk.clone());
            journal.wrote();
            LoadStep::Done(journal.meta.sequence)
        })
    }

    async fn open(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        sale: &OpenSale,
        chunks: usize,
    ) -> Result<Opened, Fault> {
        let partition = self.options.partitions.of(voucher);
        self.step("gate_loader.open", partition, |partition, now| {
            partition.open_loaded(voucher, token, (sale, chunks), now)
        })
    }

    async fn abandon(&self, voucher: VoucherId, token: &LoadToken) -> Result<(), Fault> {
        let partition = self.options.partitions.of(voucher);
        self.step("gate_loader.abandon", partition, |partition, _| {
            if let Some(slot) = partition.slots.get_mut(&voucher)
                && slot.loading.as_ref().is_some_and(|it| it.token == *token)
            {
                slot.loading = None;
                partition.writes += 1;
            }
        })
    }

    async fn unload(&self, voucher: VoucherId) -> Result<(), Fault> {
        let partition = self.options.partitions.of(voucher);
        self.step("gate_loader.unload", partition, |partition, _| {
            if let Some(slot) = partition.slots.get_mut(&voucher) {
                slot.shut();
                partition.writes += 1;
            }
        })
    }

    async fn offer(
        &self,
        voucher: VoucherId,
        claims: &[Claim],
        seats: &[Seat],
    ) -> Result<Offered, Fault> {
        const OFFER: &str = "gate_loader.offer";
        at_most(OFFER, claims.len(), LOAD_CHUNK_MAX)?;
        at_most(OFFER, seats.len(), LOAD_CHUNK_MAX)?;
        let partition = self.options.partitions.of(voucher);
        self.step(OFFER, partition, |partition, now| {
            partition.offer(voucher, claims, seats, now)
        })
    }

    async fn lose(&self, voucher: VoucherId, claims: &[Claim]) -> Result<Offered, Fault> {
        const LOSE: &str = "gate_loader.lose";
        at_most(LOSE, claims.len(), LOAD_CHUNK_MAX)?;
        let partition = self.options.partitions.of(voucher);
        self.step(LOSE, partition, |partition, now| {
            let Some(Live { mut journal, .. }) = partition.live() else {
                return Offered::PartitionMissing;
            };
            let fresh = claims.iter().filter(|it| !journal.stands(it.order));
            let decisions = fresh.cloned().map(Decision::Lost).collect();
            journal.append(now, decisions);
            Offered::Taken
        })
    }
}

impl Partition {
    fn state(&mut self) -> PartitionState {
        match self.live() {
            Some(Live { journal, .. }) if journal.stream.group.is_some() => {
                let Meta {
                    epoch,
                    sequence,
                    applied,
                } = *journal.meta;
                PartitionState::Open {
                    epoch,
                    sequence,
                    applied,
                }
            }
            _ => PartitionState::Missing,
        }
    }

    fn begin_epoch(&mut self, epoch: Epoch, applied: Sequence) -> EpochBegun {
        if let Some(meta) = self.meta.filter(|meta| meta.epoch >= epoch) {
            return EpochBegun::NotNewer(meta.epoch);
        }
        self.meta = Some(Meta {
            epoch,
            sequence: applied,
            applied,
        });
        self.stream = Some(Stream::new(epoch));
        self.decided = Some(Decided::default());
        self.writes += 1;
        EpochBegun::Begun
    }

    fn begin_load(
        &mut self,
        voucher: VoucherId,
        token: &LoadToken,
        ttl: Duration,
        now: Timestamp,
    ) -> LoadBegun {
        let Some(Live { mut journal, slots }) = self.live() else {
            return LoadBegun::PartitionMissing;
        };
        let Meta {
            epoch, sequence, ..
        } = *journal.meta;
        let slot = slots.entry(voucher).or_default();
        let deadline = now.plus(ttl);
        if let Some(loading) = slot.loading_of(token, epoch, now) {
            loading.deadline = deadline;
        } else if slot.is_loading(epoch, now) {
            return LoadBegun::Busy;
        } else {
            slot.shut();
            slot.loading = Some(Loading {
                token: token.clone(),
                epoch,
                deadline,
                mark: sequence,
                staged: Vec::new(),
            });
        }
        journal.wrote();
        LoadBegun::Begun { epoch, sequence }
    }

    /// The load that this token is good for, and where its decisions go.
    fn loading(
        &mut self,
        voucher: VoucherId,
        token: &LoadToken,
        now: Timestamp,
    ) -> Option<(Journal<'_>, &mut Loading)> {
        let Live { journal, slots } = self.live()?;
        let slot = slots.get_mut(&voucher)?;
        let loading = slot.loading_of(token, journal.meta.epoch, now)?;
        Some((journal, loading))
    }

    fn append_again(
        &mut self,
        voucher: VoucherId,
        token: &LoadToken,
        holders: &[Claim],
        seats: &[Seat],
        now: Timestamp,
    ) -> LoadStep {
        let Some((mut journal, loading)) = self.loading(voucher, token, now) else {
            return LoadStep::NotMine;
        };
        let granted = holders
            .iter()
            .filter(|claim| !journal.stands(claim.order))
            .map(|claim| Decision::Granted(claim.clone()));
        let joined = seats
            .iter()
            .filter(|seat| !journal.stands(seat.order))
            .map(|seat| Decision::Joined {
                claim: seat.clone().into_claim(voucher),
                ticket: seat.ticket,
            });
        let decisions: Vec<Decision> = granted.chain(joined).collect();
        append_loading(&mut journal, loading, now, decisions);
        LoadStep::Done(journal.meta.sequence)
    }

    fn open_loaded(
        &mut self,
        voucher: VoucherId,
        token: &LoadToken,
        (open, chunks): (&OpenSale, usize),
        now: Timestamp,
    ) -> Opened {
        let Some(Live { mut journal, slots }) = self.live() else {
            return Opened::NotMine;
        };
        let epoch = journal.meta.epoch;
        let Some(slot) = slots.get_mut(&voucher) else {
            return Opened::NotMine;
        };
        if slot.open_in == Some(epoch) && slot.opened_by.as_ref() == Some(token) {
            return Opened::Opened;
        }
        match slot.loading_of(token, epoch, now) {
            None => return Opened::NotMine,
            Some(loading) if open.applied < loading.mark => return Opened::Behind(loading.mark),
            Some(loading) if loading.staged.len() != chunks => return Opened::NotMine,
            Some(_) => {}
        }
        if let Some(loading) = slot.loading.take() {
            *slot = Slot {
                sale: Some(loading.into_sale(voucher, open)),
                open_in: Some(epoch),
                opened_by: Some(token.clone()),
                ..Slot::default()
            };
        }
        journal.wrote();
        Opened::Opened
    }

    fn offer(
        &mut self,
        voucher: VoucherId,
        claims: &[Claim],
        seats: &[Seat],
        now: Timestamp,
    ) -> Offered {
        let Some(Live { mut journal, slots }) = self.live() else {
            return Offered::PartitionMissing;
        };
        let epoch = journal.meta.epoch;
        let Some(slot) = slots.get_mut(&voucher) else {
            return Offered::NotLoaded;
        };
        let loads = slot.is_loading(epoch, now);
        if !loads && slot.open_sale(epoch, now).is_err() {
            return Offered::NotLoaded;
        }
        let mut decisions: Vec<Decision> = Vec::new();
        let mut sale = slot.sale.as_mut();
        let known = |sale: Option<&Sale>, decisions: &[Decision], claim: &Claim| {
            let repeated = |it: &Decision| it.claim().is_some_and(|it| it.order == claim.order);
            journal.stands(claim.order)
                || sale.is_some_and(|sale| knows(sale, claim))
                || decisions.iter().any(repeated)
        };
        for claim in claims {
            if known(sale.as_deref(), &decisions, claim) {
                continue;
            }
            let room = loads || sale.as_mut().is_some_and(|sale| sale.retake(claim));
            let claim = claim.clone();
            decisions.push(if room {
                Decision::Granted(claim)
            } else {
                Decision::Lost(claim)
            });
        }
        for seat in seats {
            let claim = seat.clone().into_claim(voucher);
            if known(sale.as_deref(), &decisions, &claim) {
                continue;
            }
            let room = loads || sale.as_mut().is_some_and(|sale| sale.reseat(seat));
            decisions.push(if room {
                let ticket = seat.ticket;
                Decision::Joined { claim, ticket }
            } else {
                Decision::Lost(claim)
            });
        }
        match &mut slot.loading {
            Some(loading) if loads => append_loading(&mut journal, loading, now, decisions),
            _ => journal.append(now, decisions),
        }
        Offered::Taken
    }
}

/// Appends decisions about a voucher that is being loaded: the snapshot has to contain them.
fn append_loading(
    journal: &mut Journal<'_>,
    loading: &mut Loading,
    now: Timestamp,
    decisions: Vec<Decision>,
) {
    if !decisions.is_empty() {
        journal.append(now, decisions);
        loading.mark = journal.meta.sequence;
    }
}

fn knows(sale: &Sale, claim: &Claim) -> bool {
    let waits = || {
        let seat = sale.waitlist().seat(claim.buyer);
        seat.is_some_and(|seat| seat.order == claim.order)
    };
    sale.holds(claim.buyer, claim.order) || waits()
}

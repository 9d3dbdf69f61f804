//! Loading and rebuilding the gate.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redis::{Cmd, RedisWrite};
use seckill_application::Fault;
use seckill_application::ports::{
    EpochBegun, GateLoader, LOAD_CHUNK_MAX, LoadBegun, LoadChunk, LoadStep, LoadToken, Offered,
    OpenSale, Opened, PartitionState, Survivors,
};
use seckill_domain::{Claim, Epoch, PartitionId, Seat, Sequence, Timestamp, VoucherId};

use crate::admission_stream::GROUP;
use crate::fault::at_most;
use crate::gate_answers::{status_word, told_word};
use crate::keys::Address;
use crate::reply::Reply;
use crate::scripts::{
    LOADER_ABANDON, LOADER_APPEND_AGAIN, LOADER_BEGIN_EPOCH, LOADER_BEGIN_LOAD, LOADER_LOAD,
    LOADER_LOSE, LOADER_OFFER, LOADER_OPEN, LOADER_PARTITION, LOADER_UNLOAD, Script,
};
use crate::store::{Args, Lane, Store, Target, millis, words};
use crate::survivors;
use crate::wire::key_word;

/// Most claims of one script call, and so most decisions of one entry: a reader's batch then always
/// has room for a whole one.
const CLAIMS_MAX: usize = 128;

/// The loader in Redis.
pub(crate) struct RedisLoader(pub(crate) Arc<Store>);

impl RedisLoader {
    async fn on_voucher(
        &self,
        port: &'static str,
        script: &Script,
        voucher: VoucherId,
        args: Args<'_>,
    ) -> Result<Reply, Fault> {
        let target = self.0.target(voucher);
        let told = |command: &mut Cmd| {
            command.write_arg_fmt(voucher);
            args(command);
        };
        self.0.run(port, Lane::Bulk, script, target, &told).await
    }

    /// A script that needs no more than the voucher's keys, whatever the epoch.
    async fn on_keys(
        &self,
        port: &'static str,
        script: &Script,
        voucher: VoucherId,
        args: Args<'_>,
    ) -> Result<Reply, Fault> {
        let partition = self.0.partitions.of(voucher);
        let address = Address {
            voucher,
            ..self.0.address(partition, Epoch::new(0))
        };
        self.0.run_at(port, Lane::Bulk, script, address, args).await
    }

    /// Appends claims again, each with its turn if it waits.
    async fn append_claims(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        claims: &[AgainWords],
    ) -> Result<LoadStep, Fault> {
        let args = |command: &mut Cmd| {
            words(command, &[&token.0]);
            write_again(command, claims);
        };
        let reply = self
            .on_voucher(
                "gate_loader.append_again",
                &LOADER_APPEND_AGAIN,
                voucher,
                &args,
            )
            .await?;
        load_step(&reply)
    }
}

/// Ticket, order, buyer, quantity, key.
type AgainWords = [String; 5];

#[async_trait]
impl GateLoader for RedisLoader {
    async fn partition(&self, partition: PartitionId) -> Result<PartitionState, Fault> {
        let target = Target {
            partition,
            ..self.0.target(VoucherId::new(0))
        };
        let args = |command: &mut Cmd| words(command, &[&GROUP]);
        let reply = (self.0)
            .run(
                "gate_loader.partition",
                Lane::Gate,
                &LOADER_PARTITION,
                target,
                &args,
            )
            .await?;
        match reply.kind() {
            "OPEN" => Ok(PartitionState::Open {
                epoch: Epoch::new(reply.parsed(1)?),
                sequence: Sequence::new(reply.parsed(2)?),
                applied: Sequence::new(reply.parsed(3)?),
            }),
            "PARTITION" => Ok(PartitionState::Missing),
            _ => Err(reply.senseless()),
        }
    }

    async fn begin_epoch(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        applied: Sequence,
    ) -> Result<EpochBegun, Fault> {
        let target = Target {
            partition,
            next: epoch,
            ..self.0.target(VoucherId::new(0))
        };
        let args = |command: &mut Cmd| words(command, &[&epoch, &applied, &GROUP]);
        let reply = (self.0)
            .run(
                "gate_loader.begin_epoch",
                Lane::Bulk,
                &LOADER_BEGIN_EPOCH,
                target,
                &args,
            )
            .await?;
        match reply.kind() {
            "BEGUN" => Ok(EpochBegun::Begun),
            "NOT_NEWER" => Ok(EpochBegun::NotNewer(Epoch::new(reply.parsed(1)?))),
            _ => Err(reply.senseless()),
        }
    }

    async fn begin_load(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        ttl: Duration,
    ) -> Result<LoadBegun, Fault> {
        let args = |command: &mut Cmd| words(command, &[&token.0, &millis(ttl)]);
        let reply = self
            .on_voucher("gate_loader.begin_load", &LOADER_BEGIN_LOAD, voucher, &args)
            .await?;
        match reply.kind() {
            "BEGUN" => Ok(LoadBegun::Begun {
                epoch: Epoch::new(reply.parsed(1)?),
                sequence: Sequence::new(reply.parsed(2)?),
            }),
            "BUSY" => Ok(LoadBegun::Busy),
            "PARTITION" => Ok(LoadBegun::PartitionMissing),
            _ => Err(reply.senseless()),
        }
    }

    async fn survivors(&self, voucher: VoucherId, cursor: u64) -> Result<Survivors, Fault> {
        survivors::page(&self.0, voucher, cursor).await
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
        let granted = holders.iter().map(holder_again);
        let claims: Vec<AgainWords> = granted.chain(seats.iter().map(seat_again)).collect();
        let (whole, rest) = claims.as_chunks::<CLAIMS_MAX>();
        for chunk in whole {
            if self.append_claims(voucher, token, chunk).await? == LoadStep::NotMine {
                return Ok(LoadStep::NotMine);
            }
        }
        self.append_claims(voucher, token, rest).await
    }

    async fn load(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        chunk: &LoadChunk,
        place: usize,
    ) -> Result<LoadStep, Fault> {
        const LOAD: &str = "gate_loader.load";
        for count in [chunk.holders.len(), chunk.seats.len(), chunk.keys.len()] {
            at_most(LOAD, count, LOAD_CHUNK_MAX)?;
        }
        let args = |command: &mut Cmd| {
            let (holders, seats) = (chunk.holders.len(), chunk.seats.len());
            words(command, &[&token.0, &place, &holders, &seats]);
            write_chunk(command, chunk);
        };
        let reply = self.on_voucher(LOAD, &LOADER_LOAD, voucher, &args).await?;
        load_step(&reply)
    }

    async fn open(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        sale: &OpenSale,
        chunks: usize,
    ) -> Result<Opened, Fault> {
        let args = |command: &mut Cmd| {
            let terms = &sale.terms;
            words(
                command,
                &[&token.0, &sale.applied, &status_word(terms.status)],
            );
            words(
                command,
                &[
                    &Timestamp::as_millis(terms.opens_at),
                    &Timestamp::as_millis(terms.closes_at),
                    &terms.per_buyer_limit,
                    &terms.waitlist_capacity,
                    &terms.total_units,
                    &sale.free,
                    &sale.version,
                    &chunks,
                ],
            );
        };
        let reply = self
            .on_voucher("gate_loader.open", &LOADER_OPEN, voucher, &args)
            .await?;
        match reply.kind() {
            "OPENED" => Ok(Opened::Opened),
            "BEHIND" => Ok(Opened::Behind(Sequence::new(reply.parsed(1)?))),
            "NOT_MINE" | "PARTITION" => Ok(Opened::NotMine),
            _ => Err(reply.senseless()),
        }
    }

    async fn abandon(&self, voucher: VoucherId, token: &LoadToken) -> Result<(), Fault> {
        let args = |command: &mut Cmd| words(command, &[&token.0]);
        self.on_keys("gate_loader.abandon", &LOADER_ABANDON, voucher, &args)
            .await?;
        Ok(())
    }

    async fn unload(&self, voucher: VoucherId) -> Result<(), Fault> {
        self.on_keys("gate_loader.unload", &LOADER_UNLOAD, voucher, &|_| {})
            .await?;
        Ok(())
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
        let granted = claims.iter().map(holder_again);
        let offers: Vec<AgainWords> = granted.chain(seats.iter().map(seat_again)).collect();
        let mut offered = Offered::Taken;
        // At least one call, so that an empty offer is answered as any other.
        for at in (0..offers.len().max(1)).step_by(CLAIMS_MAX) {
            let chunk = &offers[at..offers.len().min(at + CLAIMS_MAX)];
            let args = |command: &mut Cmd| write_again(command, chunk);
            let reply = self
                .on_voucher(OFFER, &LOADER_OFFER, voucher, &args)
                .await?;
            offered = match reply.kind() {
                "TAKEN" => Offered::Taken,
                "PARTITION" => Offered::PartitionMissing,
                "NOT_LOADED" => Offered::NotLoaded,
                _ => return Err(reply.senseless()),
            };
            if offered != Offered::Taken {
                break;
            }
        }
        Ok(offered)
    }

    async fn lose(&self, voucher: VoucherId, claims: &[Claim]) -> Result<Offered, Fault> {
        const LOSE: &str = "gate_loader.lose";
        at_most(LOSE, claims.len(), LOAD_CHUNK_MAX)?;
        for chunk in claims.chunks(CLAIMS_MAX) {
            let args = |command: &mut Cmd| {
                for claim in chunk {
                    let key = key_word(claim.key.as_ref());
                    words(
                        command,
                        &[&claim.order, &claim.buyer, &claim.quantity, &key],
                    );
                }
            };
            let reply = self.on_voucher(LOSE, &LOADER_LOSE, voucher, &args).await?;
            match reply.kind() {
                "TAKEN" => {}
                "PARTITION" => return Ok(Offered::PartitionMissing),
                _ => return Err(reply.senseless()),
            }
        }
        Ok(Offered::Taken)
    }
}

fn load_step(reply: &Reply) -> Result<LoadStep, Fault> {
    match reply.kind() {
        "DONE" => Ok(LoadStep::Done(Sequence::new(reply.parsed(1)?))),
        "NOT_MINE" | "PARTITION" => Ok(LoadStep::NotMine),
        _ => Err(reply.senseless()),
    }
}

fn holder_again(claim: &Claim) -> AgainWords {
    [
        "-".to_owned(),
        claim.order.to_string(),
        claim.buyer.to_string(),
        claim.quantity.to_string(),
        key_word(claim.key.as_ref()).into_owned(),
    ]
}

fn seat_again(seat: &Seat) -> AgainWords {
    [
        seat.ticket.get().to_string(),
        seat.order.to_string(),
        seat.buyer.to_string(),
        seat.quantity.to_string(),
        key_word(seat.key.as_ref()).into_owned(),
    ]
}

fn write_again(command: &mut Cmd, claims: &[AgainWords]) {
    for word in claims.iter().flatten() {
        command.write_arg(word.as_bytes());
    }
}

fn write_chunk(command: &mut Cmd, chunk: &LoadChunk) {
    for holder in &chunk.holders {
        let held = &holder.held;
        let promoted = if held.promoted { "p" } else { "-" };
        words(
            command,
            &[&held.order, &holder.buyer, &held.quantity, &promoted],
        );
    }
    for seat in &chunk.seats {
        let key = key_word(seat.key.as_ref());
        let ticket = seat.ticket.get();
        words(
            command,
            &[&ticket, &seat.order, &seat.buyer, &seat.quantity, &key],
        );
    }
    for used in &chunk.keys {
        let key = key_word(Some(&used.key));
        let first = &used.first;
        let told = told_word(first.first);
        words(
            command,
            &[&used.buyer, &key, &told, &first.order, &first.quantity],
        );
    }
}

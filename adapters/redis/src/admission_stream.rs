//! What the gate decided, in order.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redis::{Cmd, RedisWrite, Value};
use seckill_application::Fault;
use seckill_application::ports::{AdmissionStream, Backlog, Delivery, EntryId, StreamReply};
use seckill_domain::{Epoch, PartitionId, Sequence, VoucherId};

use crate::fault::{at_most, of_command};
use crate::keys::KeyName;
use crate::reply::malformed;
use crate::scripts::{STREAM_ACK, STREAM_BACKLOG, STREAM_TAKE_OVER, STREAM_TRIM};
use crate::store::{Lane, Store, Target, words};
use crate::wire::{decode_entry, decode_entry_id, unreadable};

/// The consumer group of every stream.
pub(crate) const GROUP: &str = "writers";

const READ_MAX: usize = 512;
const ACK_MAX: usize = 512;
const TRIM_MAX: usize = 1_000;
/// Entries of one call of a script: few enough that nobody waits long behind it.
const TRIM_STEP: usize = 50;
const CLAIM_STEP: usize = 500;

/// The streams in Redis.
pub(crate) struct RedisStream(pub(crate) Arc<Store>);

impl RedisStream {
    fn stream_key(&self, partition: PartitionId, epoch: Epoch) -> String {
        let address = self.0.address(partition, epoch);
        address.key(KeyName::Stream).to_string()
    }

    async fn exists(&self, port: &'static str, key: &str) -> Result<bool, Fault> {
        let mut kind = redis::cmd("TYPE");
        kind.arg(key);
        let kind = self.0.ask(port, Lane::Bulk, &kind).await?;
        Ok(matches!(kind, Value::SimpleString(kind) if kind == "stream"))
    }

    /// Creates the group at the start of the stream. `false` if there is no stream.
    async fn create_group(&self, port: &'static str, key: &str) -> Result<bool, Fault> {
        if !self.exists(port, key).await? {
            return Ok(false);
        }
        let mut create = redis::cmd("XGROUP");
        create.arg("CREATE").arg(key).arg(GROUP).arg("0");
        match self.0.try_ask(port, Lane::Bulk, &create).await? {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some("BUSYGROUP") => Ok(true),
            // Deleted in between: without MKSTREAM Redis refuses to create it.
            Err(_) if !self.exists(port, key).await? => Ok(false),
            Err(error) => Err(of_command(port, error)),
        }
    }
}

#[async_trait]
impl AdmissionStream for RedisStream {
    async fn read_after(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        after: EntryId,
        max: usize,
    ) -> Result<StreamReply, Fault> {
        const READ_AFTER: &str = "admission_stream.read_after";
        at_most(READ_AFTER, max, READ_MAX)?;
        let key = self.stream_key(partition, epoch);
        let mut range = redis::cmd("XRANGE");
        range.arg(&key).arg(format!("({after}")).arg("+");
        range.arg("COUNT").arg(max);
        let value = match self.0.try_ask(READ_AFTER, Lane::Bulk, &range).await? {
            Ok(value) => value,
            Err(error) if error.code() == Some("WRONGTYPE") => return Ok(StreamReply::Missing),
            Err(error) => return Err(of_command(READ_AFTER, error)),
        };
        let entries = deliveries(READ_AFTER, epoch, value)?;
        if entries.is_empty() && !self.exists(READ_AFTER, &key).await? {
            return Ok(StreamReply::Missing);
        }
        Ok(StreamReply::Entries(entries))
    }

    async fn read_new(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        consumer: &str,
        max: usize,
        wait: Duration,
    ) -> Result<StreamReply, Fault> {
        const READ_NEW: &str = "admission_stream.read_new";
        at_most(READ_NEW, max, READ_MAX)?;
        let key = self.stream_key(partition, epoch);
        let mut read = redis::cmd("XREADGROUP");
        read.arg("GROUP").arg(GROUP).arg(consumer);
        read.arg("COUNT").arg(max);
        if !wait.is_zero() {
            // To Redis 0 is for ever.
            read.arg("BLOCK").arg(crate::store::millis(wait));
        }
        read.arg("STREAMS").arg(&key).arg(">");
        // Once more after creating the group.
        for _ in 0..2 {
            match self.0.blocking.ask(READ_NEW, &read, wait).await? {
                Ok(value) => {
                    let entries = of_one_stream(READ_NEW, value)?;
                    return Ok(StreamReply::Entries(deliveries(READ_NEW, epoch, entries)?));
                }
                Err(error) if error.code() == Some("NOGROUP") => {
                    if !self.create_group(READ_NEW, &key).await? {
                        return Ok(StreamReply::Missing);
                    }
                }
                Err(error) if error.code() == Some("WRONGTYPE") => return Ok(StreamReply::Missing),
                Err(error) => return Err(of_command(READ_NEW, error)),
            }
        }
        Err(Fault::unavailable(
            READ_NEW,
            "the consumer group keeps going away",
        ))
    }

    async fn take_over(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        consumer: &str,
    ) -> Result<usize, Fault> {
        let address = self.0.address(partition, epoch);
        let args = |command: &mut Cmd| words(command, &[&GROUP, &consumer, &CLAIM_STEP]);
        loop {
            let reply = (self.0)
                .run_at(
                    "admission_stream.take_over",
                    Lane::Bulk,
                    &STREAM_TAKE_OVER,
                    address,
                    &args,
                )
                .await?;
            if reply.text(2)? == "done" {
                return reply.parsed(1);
            }
        }
    }

    async fn read_pending(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        consumer: &str,
        after: EntryId,
        max: usize,
    ) -> Result<Vec<Delivery>, Fault> {
        const READ_PENDING: &str = "admission_stream.read_pending";
        at_most(READ_PENDING, max, READ_MAX)?;
        let mut read = redis::cmd("XREADGROUP");
        read.arg("GROUP").arg(GROUP).arg(consumer);
        read.arg("COUNT").arg(max);
        let key = self.stream_key(partition, epoch);
        read.arg("STREAMS").arg(&key).arg(after.to_string());
        match self.0.try_ask(READ_PENDING, Lane::Bulk, &read).await? {
            Ok(value) => deliveries(READ_PENDING, epoch, of_one_stream(READ_PENDING, value)?),
            Err(error) if matches!(error.code(), Some("NOGROUP" | "WRONGTYPE")) => Ok(Vec::new()),
            Err(error) => Err(of_command(READ_PENDING, error)),
        }
    }

    async fn ack(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        ids: &[EntryId],
        applied: Sequence,
    ) -> Result<(), Fault> {
        const ACK: &str = "admission_stream.ack";
        at_most(ACK, ids.len(), ACK_MAX)?;
        let args = |command: &mut Cmd| {
            words(command, &[&GROUP, &applied]);
            for id in ids {
                command.write_arg_fmt(id);
            }
        };
        let address = self.0.address(partition, epoch);
        self.0
            .run_at(ACK, Lane::Bulk, &STREAM_ACK, address, &args)
            .await?;
        Ok(())
    }

    async fn trim(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        applied_up_to: EntryId,
        keep: Duration,
    ) -> Result<usize, Fault> {
        let keep_ms = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
        let address = self.0.address(partition, epoch);
        let args =
            |command: &mut Cmd| words(command, &[&GROUP, &applied_up_to, &keep_ms, &TRIM_STEP]);
        let mut removed = 0;
        while removed < TRIM_MAX {
            let reply = (self.0)
                .run_at(
                    "admission_stream.trim",
                    Lane::Bulk,
                    &STREAM_TRIM,
                    address,
                    &args,
                )
                .await?;
            if reply.kind() != "REMOVED" {
                break;
            }
            removed += reply.parsed::<usize>(1)?;
            if reply.text(2)? != "more" {
                break;
            }
        }
        Ok(removed)
    }

    async fn backlog(&self, partition: PartitionId) -> Result<Backlog, Fault> {
        let target = Target {
            partition,
            ..self.0.target(VoucherId::new(0))
        };
        let args = |command: &mut Cmd| words(command, &[&GROUP]);
        let reply = (self.0)
            .run(
                "admission_stream.backlog",
                Lane::Gate,
                &STREAM_BACKLOG,
                target,
                &args,
            )
            .await?;
        if reply.kind() != "BACKLOG" {
            return Ok(Backlog::default());
        }
        Ok(Backlog {
            decisions: reply.parsed(1)?,
            pending: reply.parsed(2)?,
            length: reply.parsed(3)?,
        })
    }
}

/// The entries of the one stream that was read.
fn of_one_stream(port: &'static str, value: Value) -> Result<Value, Fault> {
    match value {
        Value::Nil => Ok(Value::Array(Vec::new())),
        Value::Map(mut streams) if streams.len() == 1 => {
            Ok(streams.pop().map_or(Value::Nil, |(_, entries)| entries))
        }
        other => Err(malformed(port, format!("{other:?}"))),
    }
}

pub(crate) fn deliveries(
    port: &'static str,
    epoch: Epoch,
    entries: Value,
) -> Result<Vec<Delivery>, Fault> {
    let Value::Array(entries) = entries else {
        return Err(malformed(port, format!("{entries:?}")));
    };
    let read = |entry| delivery(epoch, entry);
    entries
        .into_iter()
        .map(read)
        .collect::<Option<_>>()
        .ok_or_else(|| malformed(port, "an entry without a place"))
}

/// `None` if Redis does not say where it stands.
fn delivery(epoch: Epoch, entry: Value) -> Option<Delivery> {
    let Value::Array(parts) = entry else {
        return None;
    };
    let [Value::BulkString(id), fields] = parts.as_slice() else {
        return None;
    };
    let id = decode_entry_id(std::str::from_utf8(id).ok()?)?;
    let body = match fields {
        Value::Array(fields) => fields
            .iter()
            .map(|field| match field {
                Value::BulkString(bytes) => Some(bytes.as_slice()),
                _ => None,
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| unreadable("", "fields that are not text"))
            .and_then(|fields| decode_entry(epoch, &fields)),
        _ => Err(unreadable("", "no fields")),
    };
    Some(Delivery { id, body })
}

//! Running scripts.

use std::sync::atomic::{AtomicU64, Ordering};

use redis::{Cmd, RedisWrite, Value};
use seckill_application::Fault;
use seckill_domain::{Epoch, PartitionId, Partitions, VoucherId};

use crate::config::RedisConfig;
use crate::connection::{BlockingLinks, Dialer, Link};
use crate::fault;
use crate::keys::{Address, Channel};
use crate::reply::Reply;
use crate::script_edits::{self, Edited};
use crate::scripts::Script;

/// How often a script is told a newer epoch. More than once only if epochs begin all the time.
const EPOCH_TRIES: usize = 3;

/// What a script works on, beside its partition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) partition: PartitionId,
    /// The voucher, for scripts that work on one.
    pub(crate) voucher: VoucherId,
    /// The epoch to begin, for the script that does.
    pub(crate) next: Epoch,
}

/// Which connection a call uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Short calls that somebody waits for.
    Gate,
    /// Calls that move much at once, so that no buyer waits behind them.
    Bulk,
}

/// The arguments of a script, written into a command.
pub(crate) type Args<'a> = &'a (dyn Fn(&mut Cmd) + Sync);

/// Redis, as the ports of this adapter share it.
pub(crate) struct Store {
    gate: Link,
    bulk: Link,
    pub(crate) blocking: BlockingLinks,
    namespace: String,
    pub(crate) partitions: Partitions,
    pub(crate) backlog_limit: u64,
    /// The epoch of each partition as last heard of; 0 for not yet. Only a guess, which every
    /// script checks.
    epochs: Box<[AtomicU64]>,
    /// Scripts that negative controls have changed; empty in a service.
    edited: Edited,
}

impl Store {
    pub(crate) fn new(config: &RedisConfig, dialer: Dialer) -> Result<Self, Fault> {
        Ok(Self {
            gate: Link::new(dialer.clone()),
            bulk: Link::new(dialer.clone()),
            blocking: BlockingLinks::new(dialer),
            namespace: config.namespace.clone(),
            partitions: config.partitions,
            backlog_limit: config.backlog_limit,
            epochs: config.partitions.all().map(|_| AtomicU64::new(0)).collect(),
            edited: script_edits::apply(&config.script_edits)?,
        })
    }

    /// The name of a channel.
    pub(crate) fn channel(&self, channel: Channel) -> String {
        channel.of_namespace(&self.namespace)
    }

    /// A voucher, in its partition.
    pub(crate) fn target(&self, voucher: VoucherId) -> Target {
        Target {
            partition: self.partitions.of(voucher),
            voucher,
            next: Epoch::new(0),
        }
    }

    /// Addresses in a life of a partition.
    pub(crate) fn address(&self, partition: PartitionId, epoch: Epoch) -> Address<'_> {
        Address {
            partition,
            epoch,
            ..Address::of_namespace(&self.namespace)
        }
    }

    /// Addresses outside of partitions.
    pub(crate) fn plain_address(&self) -> Address<'_> {
        Address::of_namespace(&self.namespace)
    }

    /// Runs a script on a partition, in the epoch it lives in; `args` come after the epoch.
    pub(crate) async fn run(
        &self,
        port: &'static str,
        lane: Lane,
        script: &Script,
        target: Target,
        args: Args<'_>,
    ) -> Result<Reply, Fault> {
        for _ in 0..EPOCH_TRIES {
            let epoch = self.epoch(target.partition);
            let address = Address {
                voucher: target.voucher,
                next: target.next,
                ..self.address(target.partition, epoch)
            };
            let reply = self.run_at(port, lane, script, address, args).await?;
            if reply.kind() != "STALE" {
                return Ok(reply);
            }
            self.set_epoch(target.partition, reply.parsed(1)?);
        }
        Err(Fault::unavailable(
            port,
            "the partition's epoch keeps changing",
        ))
    }

    /// Runs a script at an address. Nothing is repeated but a call of a script that Redis does not
    /// know, which it has refused.
    pub(crate) async fn run_at(
        &self,
        port: &'static str,
        lane: Lane,
        script: &Script,
        address: Address<'_>,
        args: Args<'_>,
    ) -> Result<Reply, Fault> {
        let edited = self.edited.get(script.name);
        let joined = edited.unwrap_or_else(|| script.joined());
        let known = command("EVALSHA", &joined.hash, script, address, args);
        let value = match self.link(lane).ask(port, &known).await? {
            Err(error) if error.code() == Some("NOSCRIPT") => {
                let whole = command("EVAL", &joined.source, script, address, args);
                self.link(lane).ask(port, &whole).await?
            }
            answer => answer,
        };
        let value = value.map_err(|error| {
            tracing::debug!(script = script.name, %error, "refused by redis");
            fault::of_command(port, error)
        })?;
        Reply::read(port, value)
    }

    /// Sends a plain command.
    pub(crate) async fn ask(
        &self,
        port: &'static str,
        lane: Lane,
        command: &Cmd,
    ) -> Result<Value, Fault> {
        let answer = self.try_ask(port, lane, command).await?;
        answer.map_err(|error| fault::of_command(port, error))
    }

    /// Sends a plain command; what is wrong with its answer is for the caller to judge.
    pub(crate) async fn try_ask(
        &self,
        port: &'static str,
        lane: Lane,
        command: &Cmd,
    ) -> Result<Result<Value, redis::RedisError>, Fault> {
        self.link(lane).ask(port, command).await
    }

    fn link(&self, lane: Lane) -> &Link {
        match lane {
            Lane::Gate => &self.gate,
            Lane::Bulk => &self.bulk,
        }
    }

    /// The epoch a partition is believed to live in.
    pub(crate) fn epoch(&self, partition: PartitionId) -> Epoch {
        let known = self.epochs.get(usize::from(partition.get()));
        Epoch::new(known.map_or(0, |epoch| epoch.load(Ordering::Relaxed)))
    }

    fn set_epoch(&self, partition: PartitionId, epoch: u64) {
        if let Some(known) = self.epochs.get(usize::from(partition.get())) {
            known.store(epoch, Ordering::Relaxed);
        }
    }
}

fn command(how: &str, body: &str, script: &Script, address: Address<'_>, args: Args<'_>) -> Cmd {
    let mut command = Cmd::with_capacity(64, 2_048);
    command.arg(how).arg(body).arg(script.keys.len());
    for name in script.keys {
        command.write_arg_fmt(address.key(*name));
    }
    if script.is_told_epoch() {
        command.write_arg_fmt(address.epoch);
    }
    args(&mut command);
    command
}

/// Writes words as arguments.
pub(crate) fn words(command: &mut Cmd, words: &[&dyn std::fmt::Display]) {
    for word in words {
        command.write_arg_fmt(word);
    }
}

/// A duration in whole milliseconds, at least 1.
pub(crate) fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis())
        .unwrap_or(u64::MAX)
        .max(1)
}

//! One ledger has one gate.
//!
//! Two gates for one ledger would each sell the whole stock: the ledger would refuse what is too
//! much, but buyers would have been told that it is theirs. So a gate carries a name, the ledger has
//! the name of the gate of this deployment, and every process confirms, for as long as it runs, that
//! both agree. A process that comes with another gate is refused while the one on record is
//! confirmed, and takes its place once nobody has confirmed it for a while. The rest follows: a
//! failover brings the name along, and a gate that was wiped gets it back from the processes that
//! run, or a new one if there are none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::Rng as _;
use seckill_application::Fault;
use seckill_application::ports::{AdmissionLedger, Clock};
use seckill_domain::Partitions;
use seckill_mysql::{GateOnRecord, MySqlLedger};
use seckill_redis::RedisHotPath;

use crate::config::BadSetting;
use crate::failure::Failure;
use crate::shutdown::Stop;

/// How often a process confirms.
pub(crate) const CONFIRM_EVERY: Duration = Duration::from_secs(2);
/// A gate that nobody has confirmed for so long may be replaced.
const QUIET: Duration = Duration::from_secs(10);
/// How long a start waits for the gate on record to be given up, or for its own to be named again
/// by those who run.
const PATIENCE: Duration = Duration::from_secs(12);
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Of many processes one confirmation is enough.
const CONFIRMED: Duration = Duration::from_secs(1);

/// Holds this process's gate against the one on record.
pub(crate) struct GateIdentity {
    redis: RedisHotPath,
    mysql: MySqlLedger,
    clock: Arc<dyn Clock>,
    /// The name on record when this process last agreed with it.
    agreed: Mutex<String>,
    /// Ends the process that is left with a gate that is not the deployment's any more.
    stop: Stop,
    displaced: AtomicBool,
}

/// What a start makes of the names it finds.
#[derive(Debug, PartialEq, Eq)]
enum Finding {
    /// They agree.
    Same,
    /// Nobody uses the gate on record, or there is none: this one takes its place.
    Free {
        /// It was the gate of something else; what it has decided is nothing to this ledger.
        foreign: bool,
    },
    /// Somebody uses another gate, or this one has lost its name.
    Taken,
}

fn judge(here: Option<&str>, on_record: Option<&GateOnRecord>) -> Finding {
    match (here, on_record) {
        (Some(here), Some(gate)) if gate.name == here => Finding::Same,
        (_, Some(gate)) if gate.quiet < QUIET => Finding::Taken,
        (here, _) => Finding::Free {
            foreign: here.is_some(),
        },
    }
}

impl GateIdentity {
    /// Returns once this process's gate is the one on record; refuses if another one is in use.
    pub(crate) async fn settle(
        redis: RedisHotPath,
        mysql: MySqlLedger,
        partitions: Partitions,
        clock: Arc<dyn Clock>,
        stop: &Stop,
    ) -> Result<Self, Failure> {
        let identity = Self {
            redis,
            mysql,
            clock,
            agreed: Mutex::default(),
            stop: stop.clone(),
            displaced: AtomicBool::new(false),
        };
        let deadline = identity.clock.monotonic() + PATIENCE;
        while !identity.try_settle(partitions).await? {
            if identity.clock.monotonic() >= deadline {
                return Err(refusal());
            }
            tokio::select! {
                () = identity.clock.sleep(LOOK_EVERY) => {}
                () = stop.asked_for() => return Err(Failure::Stopped),
            }
        }
        Ok(identity)
    }

    async fn try_settle(&self, partitions: Partitions) -> Result<bool, Failure> {
        let at_ledger = |fault| Failure::neighbour("SECKILL_LEDGER", &fault);
        let at_gate = |fault| Failure::neighbour("SECKILL_GATE", &fault);
        let here = self.redis.name().await.map_err(at_gate)?;
        let on_record = self.mysql.gate().await.map_err(at_ledger)?;
        let name = match judge(here.as_deref(), on_record.as_ref()) {
            Finding::Taken => return Ok(false),
            Finding::Same => here,
            Finding::Free { foreign } => {
                if foreign {
                    self.disown(partitions).await.map_err(at_ledger)?;
                    here
                } else {
                    self.redis.name_it(&new_name()).await.map_err(at_gate)?
                }
            }
        };
        let Some(name) = name else {
            return Ok(false);
        };
        let seen = on_record.as_ref().map(|gate| gate.name.as_str());
        let settled = match seen {
            Some(seen) if seen == name => self.mysql.confirm_gate(&name).await,
            seen => self.mysql.adopt_gate(seen, &name, QUIET).await,
        };
        if !settled.map_err(at_ledger)? {
            return Ok(false);
        }
        if seen.is_some_and(|seen| seen != name) {
            tracing::warn!("the ledger has a new gate; nobody used the one on record");
        }
        *self.agreed() = name;
        Ok(true)
    }

    /// Whatever epochs this gate has, the ledger's are others: so nothing that was decided for
    /// another ledger is taken for a decision of this one.
    async fn disown(&self, partitions: Partitions) -> Result<(), Fault> {
        let admissions: Arc<dyn AdmissionLedger> = self.mysql.ports().admissions;
        for partition in partitions.all() {
            let head = admissions.head(partition).await?;
            admissions.next_epoch(partition, head.epoch).await?;
        }
        Ok(())
    }

    /// Confirms that this process's gate is the one on record, and names it again if it has lost
    /// its name. Stops the process if another one is.
    pub(crate) async fn confirm(&self) -> Result<(), Fault> {
        if !self.agrees().await? {
            tracing::error!("the ledger has another gate now: stopping");
            self.displaced.store(true, Ordering::Relaxed);
            self.stop.softly();
        }
        Ok(())
    }

    /// Why the process had to stop, if it had to.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        self.displaced.load(Ordering::Relaxed).then(refusal)
    }

    async fn agrees(&self) -> Result<bool, Fault> {
        let agreed = self.agreed().clone();
        let here = self.redis.name().await?;
        let Some(gate) = self.mysql.gate().await? else {
            // A ledger from before its first gate: a backup was restored.
            return self.mysql.adopt_gate(None, &agreed, QUIET).await;
        };
        if gate.name != agreed {
            // Somebody may have named this very gate, when it was empty and nobody confirmed it.
            if here.as_ref() != Some(&gate.name) {
                return Ok(false);
            }
            *self.agreed() = gate.name;
        } else if here.as_ref() != Some(&agreed) {
            // Wiped, or back to before it was named.
            self.redis.rename(&agreed).await?;
        }
        if gate.quiet < CONFIRMED {
            return Ok(true);
        }
        let name = self.agreed().clone();
        self.mysql.confirm_gate(&name).await
    }

    fn agreed(&self) -> MutexGuard<'_, String> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is said to whoever brings a second gate.
fn refusal() -> Failure {
    Failure::Setting(BadSetting {
        setting: "SECKILL_GATE",
        problem: format!(
            "this ledger has another gate, which other processes use: two gates would each sell \
             the whole stock. Name the Redis server and database that they use; or stop them, and \
             {} seconds after the last one has ended this gate takes its place",
            QUIET.as_secs()
        ),
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "two gates must not have one name, whatever seed anybody chose"
)]
fn new_name() -> String {
    let mut rng = rand::rng();
    format!("{:016x}{:016x}", rng.next_u64(), rng.next_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_record(name: &str, quiet: Duration) -> GateOnRecord {
        GateOnRecord {
            name: name.to_owned(),
            quiet,
        }
    }

    #[test]
    fn a_gate_in_use_is_not_replaced() {
        let used = on_record("a", Duration::from_secs(3));
        assert_eq!(judge(Some("a"), Some(&used)), Finding::Same);
        assert_eq!(judge(Some("b"), Some(&used)), Finding::Taken);
        // It may have been wiped a moment ago: those who use it will name it again.
        assert_eq!(judge(None, Some(&used)), Finding::Taken);
    }

    #[test]
    fn a_gate_that_nobody_uses_is_replaced() {
        let unused = on_record("a", QUIET);
        let free = |foreign| Finding::Free { foreign };
        assert_eq!(judge(Some("a"), Some(&unused)), Finding::Same);
        assert_eq!(judge(Some("b"), Some(&unused)), free(true));
        assert_eq!(judge(None, Some(&unused)), free(false));
        assert_eq!(judge(None, None), free(false));
        assert_eq!(judge(Some("b"), None), free(true));
    }
}

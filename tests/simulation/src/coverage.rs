//! What has been seen to happen: a pass of a simulation in which nothing happened says nothing.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! seen {
    ($($(#[doc = $doc:literal])* $name:ident $words:literal;)*) => {
        /// Something that can happen in a run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Seen { $($(#[doc = $doc])* $name,)* }

        impl Seen {
            /// Everything that is counted.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// In words.
            pub fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)* }
            }
        }
    };
}

seen! {
    /// A request never reached its store.
    RequestLost "request lost";
    /// A call was carried out and its answer lost.
    AnswerLost "answer lost";
    /// A grant was decided and its answer lost.
    GrantAnswerLost "answer lost after a grant";
    /// A transaction was committed and the answer lost.
    CommitAnswerLost "answer lost after a commit";
    /// A batch was applied and the answer lost.
    BatchAnswerLost "answer lost after a batch";
    /// The first entries of a batch were applied, and the rest was not.
    BatchInPart "batch applied in part";
    /// A call was carried out after its caller had given it up.
    LateRequest "request carried out late";
    /// An entry was delivered again.
    Redelivery "redelivery";
    /// A partition's writer changed from one process to another.
    TakeOver "lease take-over";
    /// A writer found that another had taken over.
    Fenced "writer fenced";
    /// A batch did not go on from the ledger's position.
    StaleBatch "stale batch refused";
    /// A decision was in the ledger already.
    Duplicate "duplicate decision";
    /// The ledger refused a decision.
    Rejection "rejection";
    /// A message was parked.
    Parked "parked message";
    /// Units of a grant were parked.
    ParkedUnits "units parked";
    /// A parked message was settled.
    ParkedSettled "parked message settled";
    /// A sale was loaded into the gate again.
    Rebuild "rebuild of a sale";
    /// A partition began another life.
    NewEpoch "new epoch";
    /// What a process remembered was offered.
    AnswersOffered "remembered answers offered";
    /// Somebody waited and was given units.
    Promotion "promotion";
    /// An order expired.
    Expiry "expiry";
    /// An order was paid.
    Payment "payment";
    /// An order was cancelled.
    Cancellation "cancellation";
    /// An order was refunded.
    Refund "refund";
    /// Money came too late and was sent back.
    LateMoney "late money refunded";
    /// Money came that was not what its order costs.
    WrongAmount "wrong amount refunded";
    /// Somebody paid or gave up at the end of a payment window or after it.
    TooLate "paid or given up too late";
    /// Somebody asked a sale that was paused or over.
    AskedWhileShut "purchase of a sale that is shut";
    /// A place on a waitlist was given up.
    Left "place given up";
    /// A key was used again.
    KeyReplay "idempotent replay";
    /// Units were added to a sale.
    TopUp "top-up";
    /// Units were taken out of a sale.
    Withdrawal "withdrawal";
    /// A sale was paused.
    Pause "pause";
    /// A sale was closed.
    Close "close";
    /// A sale left the gate.
    Retirement "retirement";
    /// Reconciliation mended an order.
    Repair "reconciliation repair";
    /// Reconciliation found the free stock to be off.
    Drift "drift of free stock repaired";
    /// A process was killed.
    Crash "crash";
    /// A process was killed while decisions were on their way.
    CrashInFlight "crash with decisions in flight";
    /// A process was stopped for a while.
    Stall "process stalled";
    /// A process stood still beyond its lease, with a batch for the ledger in hand.
    StallWithBatch "process stalled beyond its lease, a batch in hand";
    /// Hot store emptied.
    Wipe "wipe";
    /// Hot store went back.
    Failover "failover that lost writes";
    /// One key of the hot store was lost.
    KeyLost "key lost";
    /// A sale was taken out of the gate.
    Eviction "eviction of a sale";
    /// Decisions that nobody had applied were lost with the hot data.
    DecisionsLost "decisions lost with the hot data";
    /// An entry that is not ours was put into a stream.
    Garbage "unreadable entry planted";
    /// What stood in a stream and cannot be read was parked.
    Unreadable "unreadable entry parked";
    /// The message of a grant was made unreadable.
    Spoilt "message of a grant spoilt";
    /// A decision that no sale took part in was put into a stream.
    Forgery "forged decision planted";
    /// A message was removed before the ledger had it.
    MessageGone "message lost before the ledger had it";
    /// The gate forgot a holder.
    HolderGone "holder lost at the gate";
    /// The gate missed that units came back.
    ReleaseMissed "release missed by the gate";
    /// The gate's free stock was made to be off.
    FreeOff "free stock made to be off";
    /// The delay queue was emptied while orders stood in it.
    DelaysLost "delay queue emptied";
    /// A store was off for a while.
    Outage "outage of a store";
    /// A process was cut off from a store.
    Cut "process cut off from a store";
    /// A clock was set.
    ClockStep "clock stepped";
}

/// How often each has happened.
pub struct Coverage([AtomicU64; Seen::ALL.len()]);

impl Default for Coverage {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; Seen::ALL.len()])
    }
}

impl Coverage {
    /// Notes that it happened.
    pub fn saw(&self, what: Seen) {
        self.add(what, 1);
    }

    /// Notes that it happened so often.
    pub fn add(&self, what: Seen, times: u64) {
        self.0[what as usize].fetch_add(times, Ordering::Relaxed);
    }

    /// How often it happened.
    pub fn times(&self, what: Seen) -> u64 {
        self.0[what as usize].load(Ordering::Relaxed)
    }

    /// Adds another run's.
    pub fn absorb(&self, other: &Self) {
        for what in Seen::ALL {
            self.add(*what, other.times(*what));
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for what in Seen::ALL {
            writeln!(f, "{:>10}  {}", self.times(*what), what.words())?;
        }
        Ok(())
    }
}

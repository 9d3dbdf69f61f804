//! Bugs to plant: each takes one layer of defence away, between a process and its stores or in the
//! store itself, and leaves everything that is under test as it is.
//!
//! A store in memory lacks a guard by its own switch ([`HotGuard`], [`LedgerGuard`]), or a decorator
//! answers for it what the guard asks. The same guards are cut out of the scripts and statements
//! that Redis and a database carry out in the tests called `negative_controls`.

mod gate;
mod ledger;
mod reconcile;
mod stream;
mod unit;

use std::fmt;
use std::sync::Arc;

use seckill_application::ports::{HotPath, LedgerPorts};
use seckill_application::{Fault, PaymentNotice};
use seckill_domain::invariants::InvariantId;
use seckill_memory::{HotGuard, LedgerGuard};

use crate::judge::Rule;
use crate::stores::Stores;

/// A rule by its name, or by that of its promise.
macro_rules! rule {
    (HealthyGate) => {
        Rule::HealthyGate
    };
    (NoFalseAlarm) => {
        Rule::NoFalseAlarm
    };
    (NoFalseRepair) => {
        Rule::NoFalseRepair
    };
    (Told) => {
        Rule::Told
    };
    (WholeMoney) => {
        Rule::WholeMoney
    };
    (Shut) => {
        Rule::Shut
    };
    ($promise:ident) => {
        Rule::Promise(InvariantId::$promise)
    };
}

macro_rules! bugs {
    ($($(#[doc = $doc:literal])* $name:ident $word:literal $layer:literal [$($rule:ident)+];)*) => {
        /// A bug that can be planted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Bug { $($(#[doc = $doc])* $name,)* }

        impl Bug {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// A short name.
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// What may show it first: what the layer is there for, and what follows from that.
            pub fn breaks(self) -> &'static [Rule] {
                match self { $(Self::$name => &[$(rule!($rule)),+],)* }
            }

            /// The layer that it takes away.
            pub fn layer(self) -> &'static str {
                match self { $(Self::$name => $layer,)* }
            }
        }
    };
}

bugs! {
    /// Entries leave the stream when they are read.
    AckBeforeCommit "ack before commit"
        "an entry stays in the stream until the ledger has it"
        [Conservation FairWaitlist NoFalseAlarm PaidXorExpired NoSilentLoss NoFalseRepair];
    /// What a dead consumer was given stays his.
    NoTakeOver "no take-over"
        "a new writer makes what others were given its own" [Drains];
    /// The same order takes units again.
    NoUniqueGuard "no unique guard"
        "an order takes its units once, however often its grant comes" [Once];
    /// A lost answer is asked for with a new order id, and whoever has something gets that id back.
    NewIdOnRetry "new id on retry, echoing gate"
        "an attempt keeps its order id, and the gate answers with the first one" [NoSilentLoss Idempotent];
    /// Every update is applied as if it were the next, and units come back from anybody.
    ReleaseUnchecked "release without holder check, repeated"
        "units come back once, from a buyer who holds them" [Conservation HealthyGate];
    /// Every update is applied as if it were the next.
    NoGateVersion "no gate version"
        "the gate applies each update of the ledger once" [Conservation];
    /// An order expires without being locked, whatever stage it is in by then.
    ExpiryUnconditional "expiry without state condition"
        "an order moves on only from the stage it was seen in" [PaidXorExpired Once];
    /// Units that come back are anybody's until somebody serves the waitlist.
    PromotionOutside "promotion outside the release script"
        "units that come back go to the head of the waitlist in one step" [FairWaitlist];
    /// Reconciliation compares what gate and ledger have now, while messages are on their way.
    CountersReconciled "reconciliation on live counters"
        "sets of order ids are compared at one position" [NoFalseRepair Conservation];
    /// Batches are applied whoever sends them, wherever they went on from.
    NoFence "no fence"
        "the ledger moves on only from a writer's own fence, epoch and position" [Conservation NoFalseAlarm];
    /// Nothing that was answered is offered again.
    NothingOffered "no remembered answers"
        "a process offers what it answered and the ledger does not have" [NoSilentLoss];
    /// A sale is loaded from the ledger while messages are on their way.
    LoadInFlight "load while messages are in flight"
        "a load waits until the ledger has all that the gate decided" [Conservation Idempotent NoFalseRepair];
    /// A rebuilt gate does not know who bought.
    HoldersForgotten "rebuild without holders"
        "a load brings back who holds units" [Conservation HealthyGate NoFalseRepair];
    /// A rebuilt gate does not know the keys.
    KeysForgotten "rebuild without idempotency keys"
        "a load brings back the used keys" [Idempotent HealthyGate];
    /// The ledger takes units that are not there.
    NoStockCondition "no stock condition"
        "the ledger takes units only out of what is there" [NeverOversold];
    /// The ledger does not count what a buyer has.
    NoLimit "no limit in the ledger"
        "a row constraint limits a buyer's live units" [Limit];
    /// The ledger gives a buyer a second place on a waitlist.
    SecondPlace "a second place for a buyer"
        "the ledger gives a buyer one place, when the gate has lost the one that he has" [FairWaitlist];
    /// Only the delay queue ends payment windows.
    NoSweep "no expiry sweep"
        "the ledger is swept for orders that are overdue" [Drains];
    /// What happens to an order is not written down.
    NothingWritten "changes without events"
        "an event is written in the transaction that makes it true" [Told];
    /// Events are published, and nobody is told.
    NobodyTold "published before it is told"
        "an event counts as published once it was told" [Told];
    /// Whatever comes is taken for what the order costs.
    AnyAmount "any amount pays"
        "an order is paid by what it costs, and not by less" [WholeMoney];
    /// Half of the money goes back.
    HalfRefunds "half refunds"
        "money goes back whole" [WholeMoney];
    /// Orders are paid and given up by a clock that stands still.
    NoWindow "no end of the payment window"
        "an order is paid or given up before its window ends, swept or not" [PaidXorExpired];
    /// A sale that is paused sells as if it were not.
    PauseIgnored "a pause that the gate ignores"
        "a sale that is shut decides nothing new" [Shut Drains];
    /// Units of a grant that cannot be applied are nobody's.
    ParkedForgotten "parked units that nobody counts"
        "the units of a message that is parked leave the stock" [Conservation];
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Bug {
    /// The guard that the hot store lacks.
    pub(crate) fn hot_guard(self) -> Option<HotGuard> {
        (self == Self::PromotionOutside).then_some(HotGuard::PromotionInStep)
    }

    /// The guard that the ledger lacks.
    pub(crate) fn ledger_guard(self) -> Option<LedgerGuard> {
        match self {
            Self::NoUniqueGuard => Some(LedgerGuard::UniqueOrders),
            Self::NoStockCondition => Some(LedgerGuard::Stock),
            Self::NoLimit => Some(LedgerGuard::Limit),
            Self::SecondPlace => Some(LedgerGuard::OnePlace),
            Self::ParkedForgotten => Some(LedgerGuard::Aside),
            _ => None,
        }
    }
}

/// The hot store's ports with a bug in them.
pub(crate) fn hot(bug: Option<Bug>, stores: &Stores) -> HotPath {
    let mut hot = stores.hot.clone();
    let Some(bug) = bug else {
        return hot;
    };
    match bug {
        Bug::ReleaseUnchecked | Bug::NoGateVersion => {
            hot.gate = Arc::new(gate::Repeating {
                inner: hot.gate.clone(),
                memory: stores.memory.clone(),
                unchecked: bug == Bug::ReleaseUnchecked,
            });
        }
        Bug::PauseIgnored => {
            let inner = hot.gate.clone();
            hot.gate = Arc::new(gate::Restless { inner });
        }
        Bug::AckBeforeCommit | Bug::NoTakeOver => {
            let inner = hot.stream.clone();
            hot.stream = Arc::new(stream::Careless { inner, bug });
        }
        Bug::NothingOffered => {
            hot.loader = Arc::new(stream::Silent {
                inner: hot.loader.clone(),
            });
        }
        _ => {}
    }
    hot
}

/// The ledger's ports with a bug in them.
pub(crate) fn ledger(bug: Option<Bug>, stores: &Stores) -> LedgerPorts {
    let mut ledger = stores.ledger.clone();
    match bug {
        Some(Bug::NoFence) => {
            let inner = ledger.admissions.clone();
            ledger.admissions = Arc::new(ledger::Unfenced { inner });
        }
        Some(
            bug @ (Bug::ExpiryUnconditional
            | Bug::HoldersForgotten
            | Bug::KeysForgotten
            | Bug::NoSweep
            | Bug::NothingWritten
            | Bug::HalfRefunds),
        ) => {
            let inner = ledger.ledger.clone();
            ledger.ledger = Arc::new(ledger::Sloppy { inner, bug });
        }
        _ => {}
    }
    ledger
}

/// The hot store as a process sees it, with a bug in the process.
pub(crate) fn in_process(bug: Option<Bug>, mut hot: HotPath) -> HotPath {
    if bug == Some(Bug::NewIdOnRetry) {
        hot.gate = Arc::new(gate::Renumbering {
            inner: hot.gate.clone(),
            order_ids: hot.order_ids.clone(),
        });
    }
    if bug == Some(Bug::NobodyTold) {
        hot.notifier = Arc::new(unit::Mute);
    }
    hot
}

/// The ledger as whoever loads a sale sees it.
pub(crate) fn for_loading(bug: Option<Bug>, mut ledger: LedgerPorts) -> LedgerPorts {
    if bug == Some(Bug::LoadInFlight) {
        ledger.ledger = Arc::new(ledger::Sloppy {
            inner: ledger.ledger.clone(),
            bug: Bug::LoadInFlight,
        });
        ledger.admissions = Arc::new(ledger::Hasty {
            inner: ledger.admissions.clone(),
        });
    }
    ledger
}

/// The ledger as whoever pays an order or gives it up sees it.
pub(crate) fn for_paying(bug: Option<Bug>, mut ledger: LedgerPorts) -> LedgerPorts {
    if bug == Some(Bug::NoWindow) {
        ledger.ledger = Arc::new(ledger::Sloppy {
            inner: ledger.ledger.clone(),
            bug: Bug::NoWindow,
        });
    }
    ledger
}

/// What the provider says, as a process hears it.
pub(crate) async fn notice(
    bug: Option<Bug>,
    ledger: &LedgerPorts,
    mut notice: PaymentNotice,
) -> Result<PaymentNotice, Fault> {
    if bug == Some(Bug::AnyAmount)
        && let Some(order) = ledger.ledger.order(notice.order).await?
    {
        notice.amount = order.amount;
    }
    Ok(notice)
}

/// The stores as reconciliation sees them.
pub(crate) fn for_reconciling(
    bug: Option<Bug>,
    mut hot: HotPath,
    mut ledger: LedgerPorts,
) -> (HotPath, LedgerPorts) {
    if bug == Some(Bug::CountersReconciled) {
        hot.gate = Arc::new(reconcile::LiveGate { inner: hot.gate });
        ledger.ledger = Arc::new(reconcile::LiveLedger {
            inner: ledger.ledger,
        });
        ledger.admissions = Arc::new(ledger::Hasty {
            inner: ledger.admissions,
        });
    }
    (hot, ledger)
}

/// Implements a port by handing every call on, but for those that are written by hand.
macro_rules! hand_on {
    ($port:ident for $name:ident {
        $($method:ident($($arg:ident: $ty:ty),*) -> $reply:ty;)*
    } but { $($extra:tt)* }) => {
        #[async_trait]
        impl $port for $name {
            $(async fn $method(&self, $($arg: $ty),*) -> Result<$reply, Fault> {
                self.inner.$method($($arg),*).await
            })*
            $($extra)*
        }
    };
}
use hand_on;

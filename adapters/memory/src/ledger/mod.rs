//! The ledger: tables under one lock, transactions that keep their changes to themselves until they
//! commit, and row locks between them.

mod admissions;
mod book;
mod changes;
mod events;
mod locks;
mod money;
mod parked;
mod reads;
mod reconciliations;
mod settlement;
mod snapshot;
mod statements;
mod unit_of_work;
mod updates;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seckill_application::Fault;
use seckill_application::ports::{Clock, LedgerPorts};
use seckill_domain::{Partitions, Timestamp, VoucherId};
use tokio::sync::Notify;

use crate::Chaos;
use crate::patience::Patience;
use book::Book;
use locks::{Locks, Row, Taken, TransactionId};

/// How long a transaction waits for a row that another one has locked.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);

/// A guard of the ledger that a test takes away, to show what it is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerGuard {
    /// An order takes its units once, however often its grant comes.
    UniqueOrders,
    /// A buyer's live units never exceed the limit.
    Limit,
    /// Units are taken only out of what is there.
    Stock,
    /// A buyer has one place on a waitlist at most.
    OnePlace,
    /// What the gate took for a message that is parked leaves the stock.
    Aside,
}

/// The ledger in memory. Clones are handles on the same ledger. Its clock is the clock it was given.
#[derive(Clone)]
pub struct MemoryLedger {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    partitions: Partitions,
    chaos: Chaos,
    state: Mutex<State>,
    unlocked: Notify,
}

/// Everything that is there.
#[derive(Default)]
struct State {
    book: Book,
    locks: Locks,
}

impl MemoryLedger {
    /// An empty ledger.
    pub fn new(clock: Arc<dyn Clock>, partitions: Partitions) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock,
                partitions,
                chaos: Chaos::default(),
                state: Mutex::default(),
                unlocked: Notify::new(),
            }),
        }
    }

    /// Takes a guard away, for good.
    pub fn disarm(&self, guard: LedgerGuard) {
        self.state().book.lacks = Some(guard);
    }

    /// Its ports. Every call gives handles on the same ledger.
    pub fn ports(&self) -> LedgerPorts {
        LedgerPorts {
            ledger: Arc::new(self.clone()),
            admissions: Arc::new(self.clone()),
            updates: Arc::new(self.clone()),
            events: Arc::new(self.clone()),
            parked: Arc::new(self.clone()),
            money: Arc::new(self.clone()),
            reconciliations: Arc::new(self.clone()),
        }
    }

    /// The switchboard of its faults.
    pub fn chaos(&self) -> &Chaos {
        &self.shared.chaos
    }

    /// While `down`, every call fails before anything happens, and transactions under way cannot
    /// commit.
    pub fn down(&self, down: bool) {
        self.shared.chaos.down(down);
    }

    /// Changes a voucher's stock by hand, which its orders know nothing of. `false` if there is no
    /// such voucher, or not so many units.
    pub fn shift_stock(&self, voucher: VoucherId, by: i32) -> bool {
        let mut state = self.state();
        let voucher = state.book.vouchers.get_mut(&voucher);
        let shifted = voucher.and_then(|voucher| {
            voucher.stock_units = voucher.stock_units.checked_add_signed(by)?;
            Some(())
        });
        shifted.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// One transaction in one step, as the call `name`: waits until no other transaction has one of
    /// the rows that it needs.
    async fn when_free<T>(
        &self,
        name: &'static str,
        rows: impl Fn(&Book) -> Vec<Row>,
        act: impl FnOnce(&mut Book, Timestamp) -> T,
    ) -> Result<T, Fault> {
        let call = self.shared.chaos.enter(name)?;
        let mut patience = Patience::of(&*self.shared.clock, LOCK_WAIT_MAX);
        loop {
            let unlocked = self.shared.unlocked.notified();
            let now = self.shared.clock.now();
            {
                let mut state = self.state();
                let State { book, locks } = &mut *state;
                if rows(book).iter().all(|row| !locks.is_taken(row)) {
                    let answer = act(book, now);
                    drop(state);
                    return call.answer(answer);
                }
            }
            if !patience.outlasts(unlocked).await {
                return Err(Fault::unavailable(name, "waited too long for a row lock"));
            }
        }
    }

    /// Takes a row for a transaction, waiting for whoever has it. Fails if that takes too long, or
    /// for ever because they wait for each other; then the transaction must roll back.
    async fn lock(
        &self,
        name: &'static str,
        transaction: TransactionId,
        row: Row,
    ) -> Result<(), Fault> {
        let mut patience = Patience::of(&*self.shared.clock, LOCK_WAIT_MAX);
        loop {
            let unlocked = self.shared.unlocked.notified();
            let taken = self.state().locks.take(transaction, &row);
            match taken {
                Taken::Yes => return Ok(()),
                Taken::Deadlock => return Err(Fault::unavailable(name, "deadlock; rolled back")),
                Taken::Busy => {}
            }
            let _waiting = Waits {
                ledger: self,
                transaction,
            };
            if !patience.outlasts(unlocked).await {
                return Err(Fault::unavailable(name, "waited too long for a row lock"));
            }
        }
    }

    fn unlock(&self, transaction: TransactionId) {
        self.state().locks.release(transaction);
        self.shared.unlocked.notify_waiters();
    }
}

/// A wait for a row; a dropped one is forgotten, so that it deadlocks with nobody.
struct Waits<'a> {
    ledger: &'a MemoryLedger,
    transaction: TransactionId,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.ledger.state().locks.stop_waiting(self.transaction);
    }
}

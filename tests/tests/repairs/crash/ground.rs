//! The stores on which processes stop and others go on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use seckill_application::ports::{Clock, Notifier};
use seckill_application::{Fault, PublishEvents};
use seckill_domain::{BuyerId, Event, EventId, Held, OrderId, Voucher};
use seckill_memory::{HotPathOptions, MemoryHotPath, MemoryLedger};
use seckill_tests::controls::{Bench, Branch, Fuse, HastyClock, PARTITIONS, Stores, interrupted};
use seckill_tests::harness::{Gate, Ledger};
use seckill_tests::stack;

/// Longer than any claim, lease or token of a process that is gone lasts.
const CLAIMS: Duration = Duration::from_secs(31);
/// Longer than a payment window.
const PAYMENT_WINDOW: Duration = Duration::from_mins(16);

/// Where a scene is played.
pub(super) enum Ground {
    /// In stores of its own each time.
    Memory,
    /// On one namespace and one database, sale after sale.
    Servers {
        /// Its connections.
        place: Arc<Place>,
        /// Its namespace and database, as long as they are used.
        _bench: Box<Bench>,
    },
}

impl Ground {
    pub(super) fn memory() -> Self {
        stack::memory();
        Self::Memory
    }

    pub(super) async fn servers() -> Option<Self> {
        let bench = Bench::intact().await?;
        let place = Place {
            stores: bench.stores().await,
            pauses: Arc::default(),
            behind: Behind::Servers {
                gate: bench.gate().await,
                rows: bench.rows().await,
            },
            heard: Arc::default(),
        };
        Some(Self::Servers {
            place: Arc::new(place),
            _bench: Box::new(bench),
        })
    }

    pub(super) fn place(&self) -> Arc<Place> {
        match self {
            Self::Memory => Arc::new(Place::in_memory()),
            Self::Servers { place, .. } => place.clone(),
        }
    }
}

/// Stores, and the ways around them.
pub(super) struct Place {
    stores: Stores,
    /// For whoever would really pause.
    pauses: Arc<HastyClock>,
    behind: Behind,
    heard: Arc<Heard>,
}

enum Behind {
    Memory(MemoryHotPath),
    Servers { gate: Gate, rows: Ledger },
}

/// Somebody who is told of events, by whatever process.
#[derive(Default)]
struct Heard(Mutex<Vec<EventId>>);

#[async_trait]
impl Notifier for Heard {
    async fn notify(&self, events: &[Event]) -> Result<(), Fault> {
        let mut heard = self.0.lock().unwrap();
        heard.extend(events.iter().map(|event| event.id));
        Ok(())
    }
}

impl Place {
    fn in_memory() -> Self {
        let pauses = Arc::new(HastyClock::default());
        let clock: Arc<dyn Clock> = pauses.clone();
        let store = MemoryHotPath::new(HotPathOptions::new(PARTITIONS), clock.clone());
        let book = MemoryLedger::new(clock.clone(), PARTITIONS);
        Self {
            stores: Stores {
                hot: store.ports(),
                ledger: book.ports(),
                clock,
            },
            pauses,
            behind: Behind::Memory(store),
            heard: Arc::default(),
        }
    }

    /// A fresh process.
    pub(super) fn branch(&self) -> Branch {
        Branch::over(self.stores.clone())
    }

    /// A process that stops where the fuse says.
    pub(super) fn doomed(&self, fuse: &Arc<Fuse>) -> Branch {
        Branch::over(interrupted(&self.stores, fuse))
    }

    /// A relay of events of a process, to those who listen at its stores and to one who remembers.
    pub(super) fn publisher(&self, process: &Branch, owner: &str) -> PublishEvents {
        let notifier = process.stores.hot.notifier.clone();
        process.publisher(owner, vec![notifier, self.heard.clone()])
    }

    /// A clock that does not really pause.
    pub(super) fn pauses(&self) -> Arc<dyn Clock> {
        self.pauses.clone()
    }

    /// Whether somebody was told of an event.
    pub(super) fn heard(&self, event: EventId) -> bool {
        self.heard.0.lock().unwrap().contains(&event)
    }

    /// The rows of the ledger, if it has some.
    pub(super) fn rows(&self) -> Option<&Ledger> {
        match &self.behind {
            Behind::Memory(_) => None,
            Behind::Servers { rows, .. } => Some(rows),
        }
    }

    /// Claims, leases and loads of processes that are gone run out; those of the delay queue that
    /// are about these orders.
    pub(super) async fn let_claims_run_out(&self, orders: &[OrderId]) {
        match &self.behind {
            Behind::Memory(_) => self.pauses.skip(CLAIMS),
            Behind::Servers { gate, rows } => {
                for (name, _) in gate.keys().await {
                    if name.contains(":lease:") || name.ends_with(":loading") {
                        gate.run::<i64>(redis::cmd("DEL").arg(&name)).await;
                    }
                }
                gate.hurry_delays(orders).await;
                rows.change(
                    "UPDATE event_batches SET claimed_until = UTC_TIMESTAMP(3) \
                     WHERE claimed_until > UTC_TIMESTAMP(3) AND first_id >= ?",
                    0,
                )
                .await;
            }
        }
    }

    /// The payment windows of these orders end.
    pub(super) async fn end_windows(&self, orders: &[OrderId]) {
        match &self.behind {
            Behind::Memory(_) => self.pauses.skip(PAYMENT_WINDOW),
            Behind::Servers { gate, rows } => {
                gate.hurry_delays(orders).await;
                for order in orders {
                    let changed = rows.change(
                        "UPDATE orders SET expires_at = created_at WHERE id = ?",
                        order.get(),
                    );
                    assert_eq!(changed.await, 1, "{order} is there");
                }
            }
        }
    }

    /// The gate forgets a holder.
    pub(super) async fn drop_holder(&self, voucher: &Voucher, buyer: u64, order: OrderId) {
        let done = match &self.behind {
            Behind::Memory(store) => store.drop_holder(voucher.id, order),
            Behind::Servers { gate, .. } => gate.drop_holder(voucher.id, BuyerId::new(buyer)).await,
        };
        assert!(done, "{buyer} held {order}");
    }

    /// The gate has given a unit, and nobody else knows.
    pub(super) async fn plant_holder(&self, voucher: &Voucher, buyer: u64, order: OrderId) {
        let who = BuyerId::new(buyer);
        let done = match &self.behind {
            Behind::Memory(store) => {
                let held = Held {
                    order,
                    quantity: 1,
                    promoted: false,
                };
                store.plant_holder(voucher.id, who, held) && store.shift_free(voucher.id, -1)
            }
            Behind::Servers { gate, .. } => gate.plant_holder(voucher.id, who, order, 1).await,
        };
        assert!(done, "{buyer} now holds {order}");
    }

    /// The gate's free units are off.
    pub(super) async fn shift_free(&self, voucher: &Voucher, by: i32) {
        let done = match &self.behind {
            Behind::Memory(store) => store.shift_free(voucher.id, by),
            Behind::Servers { gate, .. } => gate.shift_free(voucher.id, by).await,
        };
        assert!(done, "there are so many");
    }

    /// The gate has granted a unit, by a decision of its own that no sale took part in.
    pub(super) async fn decide_grant(&self, voucher: &Voucher, buyer: u64, order: OrderId) {
        let who = BuyerId::new(buyer);
        match &self.behind {
            Behind::Memory(store) => {
                let claim = seckill_domain::Claim {
                    order,
                    voucher: voucher.id,
                    buyer: who,
                    quantity: 1,
                    key: None,
                };
                let granted = vec![seckill_domain::Decision::Granted(claim)];
                assert!(store.plant_decisions(PARTITIONS.of(voucher.id), granted));
            }
            Behind::Servers { gate, .. } => {
                let words = format!("granted {} {order} {who} 1 -", voucher.id);
                gate.decide(PARTITIONS.of(voucher.id), &words).await;
            }
        }
    }

    /// A sale that was looked at enough: on servers the next one begins beside it.
    pub(super) async fn put_away(&self, voucher: &Voucher) {
        if let Some(rows) = self.rows() {
            const SQL: &str = "UPDATE vouchers SET status = 'closed', \
                 retired_at = COALESCE(retired_at, UTC_TIMESTAMP(3)) WHERE id = ?";
            rows.change(SQL, voucher.id.get()).await;
        }
    }
}

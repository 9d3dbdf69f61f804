//! A buyer presses the button.

use std::sync::Arc;
use std::time::Duration;

use seckill_domain::{
    Admission, Attempt, BuyerId, Claim, IdempotencyKey, Order, OrderId, OrderStatus, PlaceAtFirst,
    Timestamp, VoucherId,
};

use crate::patience::{LOOK_PATIENCE, within};
use crate::ports::{
    Admitted, Clock, GateOrder, HotPath, Ledger, LedgerPorts, NotLoaded, OrderIds, PurchaseGate,
};
use crate::standing::{Standing, Standings};
use crate::{Effect, Fault, RememberedAnswers, WantedSales};

/// What a buyer asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurchaseRequest {
    /// Which voucher.
    pub voucher: VoucherId,
    /// Who.
    pub buyer: BuyerId,
    /// How many units, at least 1.
    pub quantity: u32,
    /// His key for this purchase.
    pub key: Option<IdempotencyKey>,
}

/// What a buyer is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purchase {
    /// The units are his.
    Granted {
        /// The order.
        order: OrderId,
        /// Where it is now: queued, unless this is a replay.
        status: OrderStatus,
    },
    /// He waits.
    Waitlisted {
        /// The order.
        order: OrderId,
        /// His place, counted from 1; 0 if he has moved on since.
        position: u32,
        /// Where it is now: waiting, unless this is a replay.
        status: OrderStatus,
        /// Whether the place is new.
        joined: bool,
    },
    /// He is at his limit.
    AlreadyHeld {
        /// His live orders, the first one first.
        orders: Vec<OrderId>,
    },
    /// More than he may still have.
    LimitExceeded {
        /// Units he may still have.
        remaining: u32,
    },
    /// His key was used for another quantity.
    KeyReused,
    /// Not yet.
    NotOpen {
        /// When.
        opens_at: Timestamp,
    },
    /// Not now.
    Paused,
    /// Not any more.
    Closed,
    /// Nothing left.
    SoldOut,
    /// There is no such voucher for buyers.
    VoucherNotFound,
    /// The gate is being loaded, or the ledger is too far behind; nothing changed. Try again.
    Unavailable,
}

/// How long a buyer waits for a gate that is being loaded.
const LOADING_PATIENCE: Duration = Duration::from_secs(1);
const LOADING_PAUSE: Duration = Duration::from_millis(15);
/// How often an attempt is repeated whose answer was lost.
const TRIES: u32 = 3;
const RETRY_PAUSE: Duration = Duration::from_millis(25);

/// Lets a buyer into the sale: one round trip to the gate, none to the ledger.
pub struct PurchaseVoucher {
    gate: Arc<dyn PurchaseGate>,
    order_ids: Arc<dyn OrderIds>,
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    wanted: Arc<WantedSales>,
    remembered: Arc<RememberedAnswers>,
    standings: Standings,
}

impl PurchaseVoucher {
    /// Over these ports.
    pub fn new(
        hot: &HotPath,
        ledger: &LedgerPorts,
        clock: Arc<dyn Clock>,
        wanted: Arc<WantedSales>,
        remembered: Arc<RememberedAnswers>,
    ) -> Self {
        Self {
            gate: hot.gate.clone(),
            order_ids: hot.order_ids.clone(),
            ledger: ledger.ledger.clone(),
            standings: Standings::new(ledger.ledger.clone(), clock.clone()),
            clock,
            wanted,
            remembered,
        }
    }

    /// Settles one attempt. Must be driven to its end once begun: a caller who goes away does not
    /// undo a grant.
    pub async fn run(&self, request: PurchaseRequest) -> Result<Purchase, Fault> {
        let attempt = Attempt {
            order: self.order_ids.next().await?,
            buyer: request.buyer,
            quantity: request.quantity,
            key: request.key,
        };
        let deadline = self.clock.monotonic() + LOADING_PATIENCE;
        loop {
            match self.admit(request.voucher, &attempt).await? {
                Admitted::Decided { mut admissions, .. } => {
                    let admission = admissions.pop().ok_or_else(no_answer)?;
                    return self.tell(request.voucher, &attempt, admission).await;
                }
                Admitted::BacklogFull => return Ok(Purchase::Unavailable),
                Admitted::NotLoaded(why) => {
                    if let Some(answer) = self.without_gate(request.voucher, &attempt, why).await? {
                        return Ok(answer);
                    }
                    if self.clock.monotonic() >= deadline {
                        return Ok(Purchase::Unavailable);
                    }
                    self.clock.sleep(LOADING_PAUSE).await;
                }
            }
        }
    }

    /// Asks the gate; when the answer is lost, asks again with the same attempt, which settles what
    /// became of it.
    async fn admit(&self, voucher: VoucherId, attempt: &Attempt) -> Result<Admitted, Fault> {
        let mut tried = 1;
        loop {
            match self
                .gate
                .admit(voucher, std::slice::from_ref(attempt))
                .await
            {
                Err(fault) if fault.effect() == Effect::Unknown && tried < TRIES => {
                    tracing::debug!(fault = fault.chain(), order = %attempt.order, "asking again");
                    self.clock.sleep(RETRY_PAUSE * tried).await;
                    tried += 1;
                }
                settled => return settled,
            }
        }
    }

    async fn tell(
        &self,
        voucher: VoucherId,
        attempt: &Attempt,
        admission: Admission,
    ) -> Result<Purchase, Fault> {
        Ok(match admission {
            Admission::Granted { order } => {
                self.remembered.remember_grant(Claim::of(voucher, attempt));
                Purchase::Granted {
                    order,
                    status: OrderStatus::Queued,
                }
            }
            Admission::Waitlisted {
                order,
                position,
                ticket,
            } => {
                let claim = Claim::of(voucher, attempt);
                self.remembered.remember_place(claim, ticket);
                let status = OrderStatus::Waiting;
                Purchase::Waitlisted {
                    order,
                    position,
                    status,
                    joined: true,
                }
            }
            Admission::AlreadyWaiting { order, position } => {
                let status = OrderStatus::Waiting;
                Purchase::Waitlisted {
                    order,
                    position,
                    status,
                    joined: false,
                }
            }
            Admission::Replayed { order, first } => {
                let first_use = Claim {
                    order,
                    ..Claim::of(voucher, attempt)
                };
                self.replay(first_use, first).await?
            }
            Admission::KeyReused { .. } => Purchase::KeyReused,
            Admission::AlreadyHeld { orders } => Purchase::AlreadyHeld { orders },
            Admission::LimitExceeded { remaining } => Purchase::LimitExceeded { remaining },
            Admission::NotOpen { opens_at } => Purchase::NotOpen { opens_at },
            Admission::Paused => Purchase::Paused,
            Admission::Closed => Purchase::Closed,
            Admission::SoldOut => Purchase::SoldOut,
        })
    }

    /// A replay gives the same outcome and order with its current status.
    async fn replay(&self, claim: Claim, first: PlaceAtFirst) -> Result<Purchase, Fault> {
        let order = claim.order;
        let at_gate = self.gate.find_order(order).await?;
        let mut position = at_gate.as_ref().and_then(|found| found.position);
        let look = self.stage(order);
        let status = match within(&*self.clock, LOOK_PATIENCE, "ledger.stages", look).await {
            Ok(status) => status,
            // While the ledger is away, the gate's word is good for what the ledger does not have.
            Err(_) if at_gate.as_ref().is_some_and(GateOrder::is_gates_to_say) => None,
            Err(fault) => return Err(fault),
        };
        if status.is_none() && first == PlaceAtFirst::Granted {
            // Whoever was told of it first may be dead when Redis loses it.
            self.remembered.remember_grant(claim);
        }
        let left = at_gate.as_ref().and_then(|found| found.left);
        let status = match status {
            Some(OrderStatus::Waiting) | None => left.map(|it| it.stage().status()).or(status),
            Some(_) => status,
        };
        let status = match (status, &at_gate) {
            // The gate forgets an order a while after the ledger has it.
            (Some(OrderStatus::Waiting), None) => {
                position = self.ledger.waiting_position(order).await?;
                OrderStatus::Waiting
            }
            (Some(OrderStatus::Waiting) | None, Some(found)) if !found.holds_units => {
                OrderStatus::Waiting
            }
            (Some(OrderStatus::Waiting) | None, _) => OrderStatus::Queued,
            (Some(known), _) => known,
        };
        let position = position.unwrap_or(0);
        Ok(match first {
            PlaceAtFirst::Granted => Purchase::Granted { order, status },
            PlaceAtFirst::Waitlisted => Purchase::Waitlisted {
                order,
                position,
                status,
                joined: false,
            },
        })
    }

    async fn stage(&self, order: OrderId) -> Result<Option<OrderStatus>, Fault> {
        let stages = self.ledger.stages(&[order]).await?;
        Ok(stages.first().map(|(_, status)| *status))
    }

    /// What can be said without the gate: `None` means wait for it.
    async fn without_gate(
        &self,
        voucher: VoucherId,
        attempt: &Attempt,
        why: NotLoaded,
    ) -> Result<Option<Purchase>, Fault> {
        match why {
            NotLoaded::Loading => return Ok(None),
            NotLoaded::Retired => {
                return self.answer_from_ledger(voucher, attempt).await.map(Some);
            }
            NotLoaded::Voucher | NotLoaded::Partition => {}
        }
        match self.standings.of(voucher).await? {
            Standing::Unknown => Ok(Some(Purchase::VoucherNotFound)),
            Standing::Retired => self.answer_from_ledger(voucher, attempt).await.map(Some),
            Standing::AtGate => {
                self.wanted.request(voucher);
                Ok(None)
            }
        }
    }

    /// The four questions that outlive a sale, for one that has left the gate.
    async fn answer_from_ledger(
        &self,
        voucher: VoucherId,
        attempt: &Attempt,
    ) -> Result<Purchase, Fault> {
        let limit = match self.ledger.voucher(voucher).await? {
            Some(found) => found.terms.per_buyer_limit,
            None => return Ok(Purchase::VoucherNotFound),
        };
        let key = attempt.key.as_ref();
        let orders = self.ledger.orders_on(voucher, attempt.buyer, key).await?;
        if let Some(first) = orders
            .iter()
            .find(|order| key.is_some() && order.key.as_ref() == key)
        {
            return Ok(Self::replay_stored(first, attempt.quantity));
        }
        let live: Vec<&Order> = orders
            .iter()
            .filter(|order| order.status().is_live())
            .collect();
        if live.iter().map(|order| order.quantity).sum::<u32>() >= limit {
            return Ok(Purchase::AlreadyHeld {
                orders: live.iter().map(|order| order.id).collect(),
            });
        }
        Ok(Purchase::Closed)
    }

    fn replay_stored(first: &Order, quantity: u32) -> Purchase {
        let (order, status) = (first.id, first.status());
        if first.quantity != quantity {
            Purchase::KeyReused
        } else if first.ticket.is_some() {
            Purchase::Waitlisted {
                order,
                position: 0,
                status,
                joined: false,
            }
        } else {
            Purchase::Granted { order, status }
        }
    }
}

fn no_answer() -> Fault {
    Fault::broken(
        "purchase_gate.admit",
        "the gate decided nothing about the attempt",
    )
}

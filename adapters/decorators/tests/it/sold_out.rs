//! Who is turned away without asking, and who never is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::poll;
use seckill_application::Fault;
use seckill_application::ports::{Admitted, PurchaseGate};
use seckill_decorators::{SoldOutGate, SoldOutSettings};
use seckill_domain::{
    Admission, Attempt, BuyerId, Epoch, GateChange, GateUpdate, GateVersion, OrderId, Sale,
    SaleStatus, SaleTerms, Sequence, Ticket, Timestamp, VoucherId,
};

use crate::inner::{Hand, Mood};
use crate::till::Till;

const VOUCHER: VoucherId = VoucherId::new(7);
const RECHECK: Duration = Duration::from_millis(50);
const MOMENT: Duration = Duration::from_millis(1);
const HOLDERS: u64 = 5;

struct Stand {
    till: Arc<Till>,
    gate: SoldOutGate,
    clock: Arc<Hand>,
    orders: AtomicU64,
}

fn terms() -> SaleTerms {
    SaleTerms {
        status: SaleStatus::Published,
        opens_at: Timestamp::from_millis(0),
        closes_at: Timestamp::from_millis(1_000_000),
        per_buyer_limit: 1,
        waitlist_capacity: 0,
        total_units: 5,
    }
}

fn attempt(order: u64, buyer: u64) -> Attempt {
    Attempt {
        order: OrderId::new(order),
        buyer: BuyerId::new(buyer),
        quantity: 1,
        key: None,
    }
}

impl Stand {
    /// All units are held by the buyers 1 to 5, under the orders of the same numbers. Buyer 1 used
    /// the key "mine".
    fn sold_out(terms: SaleTerms) -> Self {
        let mut sale = Sale::new(VOUCHER, terms, 5, GateVersion::new(3));
        for number in 1..=HOLDERS {
            let key = (number == 1).then(|| "mine".parse().unwrap());
            let attempt = Attempt {
                key,
                ..attempt(number, number)
            };
            let turn = Ticket::drawn_at(Epoch::new(1), Sequence::new(number));
            sale.admit(&attempt, Timestamp::from_millis(500), turn);
        }
        let till = Arc::new(Till::of(sale));
        let clock = Arc::new(Hand::default());
        let settings = SoldOutSettings {
            recheck: RECHECK,
            rejections_min: 10,
            ..SoldOutSettings::default()
        };
        Self {
            gate: SoldOutGate::new(till.clone(), clock.clone(), settings),
            till,
            clock,
            orders: AtomicU64::new(100),
        }
    }

    async fn admit(&self, attempt: Attempt) -> Result<Admission, Fault> {
        match self.gate.admit(VOUCHER, &[attempt]).await? {
            Admitted::Decided { mut admissions, .. } => Ok(admissions.remove(0)),
            other => panic!("{other:?}"),
        }
    }

    fn fresh(&self, buyer: u64) -> Attempt {
        attempt(self.orders.fetch_add(1, Ordering::SeqCst), buyer)
    }

    async fn buy(&self, buyer: u64) -> Admission {
        self.admit(self.fresh(buyer)).await.unwrap()
    }

    /// So many strangers, a moment after each other; returns how many of them the gate was asked
    /// about.
    async fn strangers(&self, count: u64) -> u64 {
        let before = self.till.attempts();
        for n in 0..count {
            self.clock.advance(MOMENT);
            assert_eq!(self.buy(10_000 + n).await, Admission::SoldOut);
        }
        self.till.attempts() - before
    }

    /// Strangers come until it is known.
    async fn known() -> Self {
        let stand = Self::sold_out(terms());
        assert_eq!(stand.strangers(11).await, 11);
        assert_eq!(stand.till.pages(), 1);
        assert_eq!(stand.strangers(5).await, 0);
        stand
    }

    /// Buyer 2 gives his unit up.
    fn release(&self) -> GateUpdate {
        let version = self.till.sale.lock().unwrap().pulse().version;
        GateUpdate {
            voucher: VOUCHER,
            version: version.next(),
            changes: vec![GateChange::Release {
                order: OrderId::new(2),
                buyer: BuyerId::new(2),
                quantity: 1,
            }],
        }
    }
}

#[tokio::test]
async fn a_crowd_costs_one_call_in_every_interval() {
    let stand = Stand::known().await;
    let asked = stand.strangers(1_000).await;
    assert!((18..=20).contains(&asked), "{asked} in 1,000 ms");
    assert_eq!(stand.till.pages(), 1, "holders are read once");
    assert!(stand.gate.answered() >= 980);
}

#[tokio::test]
async fn who_holds_units_is_told_so_wherever_he_stood_in_the_pages() {
    let stand = Stand::sold_out(terms());
    stand.till.page.store(2, Ordering::SeqCst);
    stand.strangers(20).await;
    assert_eq!(stand.till.pages(), 3);
    assert_eq!(stand.strangers(5).await, 0);
    for holder in 1..=HOLDERS {
        let orders = vec![OrderId::new(holder)];
        let held = Admission::AlreadyHeld { orders };
        assert_eq!(stand.buy(holder).await, held);
    }
    assert_eq!(stand.strangers(5).await, 0, "that changes nothing");
}

#[tokio::test]
async fn a_key_and_more_than_one_unit_are_for_the_gate_to_judge() {
    let stand = Stand::known().await;
    // He gives his unit up, which nobody here hears of, and asks again with his old key.
    let update = GateUpdate {
        changes: vec![GateChange::Release {
            order: OrderId::new(1),
            buyer: BuyerId::new(1),
            quantity: 1,
        }],
        ..stand.release()
    };
    stand.till.sale.lock().unwrap().follow(&update);
    assert_eq!(stand.strangers(1).await, 0);
    let keyed = Attempt {
        key: Some("mine".parse().unwrap()),
        ..stand.fresh(1)
    };
    let replayed = stand.admit(keyed).await.unwrap();
    assert!(matches!(replayed, Admission::Replayed { order, .. } if order.get() == 1));
    let many = Attempt {
        quantity: 2,
        ..stand.fresh(77)
    };
    let refused = stand.admit(many).await.unwrap();
    assert_eq!(refused, Admission::LimitExceeded { remaining: 1 });
}

#[tokio::test]
async fn a_release_that_passes_here_reopens_at_once() {
    let stand = Stand::known().await;
    stand.gate.follow(&stand.release()).await.unwrap();
    assert!(matches!(stand.buy(50).await, Admission::Granted { .. }));
}

#[tokio::test]
async fn a_release_elsewhere_reopens_within_the_interval() {
    let stand = Stand::known().await;
    let update = stand.release();
    stand.till.sale.lock().unwrap().follow(&update);
    stand.clock.advance(RECHECK);
    assert!(matches!(stand.buy(50).await, Admission::Granted { .. }));
    let held = stand.buy(50).await;
    assert!(matches!(held, Admission::AlreadyHeld { .. }), "{held:?}");
}

/// Somebody else's process sold the unit that came back: its holder is not among those who were
/// read, and the version says so.
#[tokio::test]
async fn a_holder_who_came_after_the_reading_is_told_so() {
    let stand = Stand::known().await;
    {
        let update = stand.release();
        let mut sale = stand.till.sale.lock().unwrap();
        sale.follow(&update);
        let turn = Ticket::drawn_at(Epoch::new(1), Sequence::new(9));
        let (granted, _) = sale.admit(&attempt(900, 50), Timestamp::from_millis(600), turn);
        assert!(matches!(granted, Admission::Granted { .. }));
    }
    stand.clock.advance(RECHECK);
    assert_eq!(stand.buy(60).await, Admission::SoldOut, "the look");
    let held = stand.buy(50).await;
    assert!(matches!(held, Admission::AlreadyHeld { .. }), "{held:?}");
    stand.strangers(30).await;
    assert_eq!(stand.strangers(5).await, 0, "known anew");
    let held = stand.buy(50).await;
    assert!(matches!(held, Admission::AlreadyHeld { .. }), "{held:?}");
}

/// The same, in the middle of the reading.
#[tokio::test]
async fn what_changes_while_holders_are_read_is_noticed_before_anything_is_said() {
    let stand = Stand::sold_out(terms());
    stand.till.page.store(1, Ordering::SeqCst);
    stand.strangers(12).await;
    assert_eq!(stand.till.pages(), 3, "in the middle of it");
    {
        let update = stand.release();
        let mut sale = stand.till.sale.lock().unwrap();
        sale.follow(&update);
        let turn = Ticket::drawn_at(Epoch::new(1), Sequence::new(9));
        sale.admit(&attempt(900, 50), Timestamp::from_millis(600), turn);
    }
    for _ in 0..40 {
        stand.strangers(1).await;
        let held = stand.buy(50).await;
        assert!(matches!(held, Admission::AlreadyHeld { .. }), "{held:?}");
    }
}

#[tokio::test]
async fn nothing_is_said_while_an_outcome_is_unknown() {
    let stand = Stand::known().await;
    stand.clock.advance(RECHECK);
    *stand.till.mood.lock().unwrap() = Mood::Unknown;
    assert!(stand.admit(stand.fresh(50)).await.is_err());
    *stand.till.mood.lock().unwrap() = Mood::Grants;
    assert_eq!(stand.strangers(200).await, 200);
    stand.clock.advance(Duration::from_secs(3));
    stand.strangers(20).await;
    assert_eq!(stand.strangers(5).await, 0);
}

#[tokio::test]
async fn a_gate_that_lost_the_sale_is_asked() {
    let stand = Stand::known().await;
    stand.clock.advance(RECHECK);
    *stand.till.mood.lock().unwrap() = Mood::NotLoaded;
    let reply = stand.gate.admit(VOUCHER, &[stand.fresh(50)]).await;
    assert!(matches!(reply, Ok(Admitted::NotLoaded(_))));
    *stand.till.mood.lock().unwrap() = Mood::Grants;
    assert_eq!(stand.strangers(3).await, 3);
}

/// After a silence everything is learned anew: the hot data may have been another's meanwhile.
#[tokio::test]
async fn what_was_not_looked_after_is_forgotten() {
    let stand = Stand::known().await;
    stand.clock.advance(RECHECK * 5);
    assert_eq!(stand.strangers(11).await, 11);
    assert_eq!(stand.till.pages(), 2);
    assert_eq!(stand.strangers(5).await, 0);
}

#[tokio::test]
async fn few_rejections_are_not_worth_a_reading() {
    let stand = Stand::sold_out(terms());
    for _ in 0..10 {
        assert_eq!(stand.strangers(9).await, 9);
        stand.clock.advance(RECHECK * 5);
    }
    assert_eq!(stand.till.pages(), 0);
}

#[tokio::test]
async fn a_sale_with_a_waitlist_is_always_asked() {
    let stand = Stand::sold_out(SaleTerms {
        waitlist_capacity: 1,
        ..terms()
    });
    let first = stand.buy(50).await;
    assert!(matches!(first, Admission::Waitlisted { .. }), "{first:?}");
    assert_eq!(stand.strangers(60).await, 60);
}

#[tokio::test]
async fn closing_time_is_noticed() {
    let stand = Stand::known().await;
    *stand.till.now.lock().unwrap() = Timestamp::from_millis(1_000_000);
    stand.clock.advance(RECHECK);
    assert_eq!(stand.buy(50).await, Admission::Closed);
    assert_eq!(stand.buy(51).await, Admission::Closed);
}

/// One looks; until he knows, the others are told what was true a moment ago, and not for longer
/// than that is to be trusted. He himself is not told anything meanwhile.
#[tokio::test]
async fn a_look_that_hangs_or_is_given_up_does_not_freeze_the_answer() {
    let stand = Stand::known().await;
    stand.clock.advance(RECHECK);
    let shut = stand.till.door.lock().await;
    let mut look = Box::pin(stand.buy(50));
    assert!(poll!(&mut look).is_pending());
    let mut again = Box::pin(stand.buy(50));
    assert!(poll!(&mut again).is_pending(), "he is the one who looks");
    assert_eq!(stand.strangers(3).await, 0);
    stand.clock.advance(RECHECK * 4);
    let mut late = Box::pin(stand.buy(51));
    assert!(poll!(&mut late).is_pending(), "too old to be repeated");
    drop((look, again, late));
    drop(shut);
    assert_eq!(stand.strangers(3).await, 3);
}

#[tokio::test]
async fn without_an_interval_everybody_is_asked_about() {
    let stand = Stand::sold_out(terms());
    let settings = SoldOutSettings {
        recheck: Duration::ZERO,
        ..SoldOutSettings::default()
    };
    let gate = SoldOutGate::new(stand.till.clone(), stand.clock.clone(), settings);
    for buyer in 0..200 {
        gate.admit(VOUCHER, &[attempt(1_000 + buyer, 1_000 + buyer)])
            .await
            .unwrap();
    }
    assert_eq!((stand.till.attempts(), gate.answered()), (200, 0));
}

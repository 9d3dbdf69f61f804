//! Reconciliation while everybody is at it: nothing healthy is "repaired", and what is planted in
//! the middle is.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use futures::join;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};
use seckill_tests::harness::{
    Gate, History, Lost, Offer, Purchase, Shop, Site, audit, buyer, eventually,
};
use seckill_tests::matrix::Row;

use crate::on_own_stores;
use crate::reports::{Report, begin, first_round, listed, round, round_about};

on_own_stores!(nothing_healthy_is_repaired_and_what_is_planted_is);

/// For how many seconds the crowd is there; ten minutes in a long run.
const SECONDS: &str = "SECKILL_TEST_LOAD_S";
const SECONDS_USUAL: u64 = 10;
/// People at a time, none of whom ever pauses.
const PEOPLE: u64 = 48;
/// How often one of each kind is planted.
const PLANTS: usize = 2;

fn seconds() -> u64 {
    let set = std::env::var(SECONDS).ok();
    set.map_or(SECONDS_USUAL, |set| set.parse().expect("seconds"))
}

/// Where the crowd goes.
struct Street {
    shop: Shop,
    /// One with a waitlist that is always full, and one that always has units.
    vouchers: [VoucherId; 2],
    until: Instant,
    answers: Cell<u64>,
    /// Calls of the crowd that have no answer yet.
    under_way: Cell<u64>,
}

impl Street {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// One call of the crowd.
    async fn call<T>(&self, call: impl Future<Output = Result<T, Lost>>) -> Option<T> {
        self.under_way.set(self.under_way.get() + 1);
        let answer = call.await.ok();
        self.under_way.set(self.under_way.get() - 1);
        self.answers
            .set(self.answers.get() + u64::from(answer.is_some()));
        answer
    }

    async fn walk(&self, seed: u64) {
        let mut chance = StdRng::seed_from_u64(seed);
        while !self.is_over() {
            let voucher = self.vouchers[chance.random_range(0..2)];
            let who = buyer();
            let Some(answer) = self.call(self.shop.try_buy(voucher, who, 1, None)).await else {
                continue;
            };
            match answer {
                Purchase::Granted { order, .. } => self.decide(&mut chance, who, order).await,
                Purchase::Waitlisted { .. } => self.leave(&mut chance, who, voucher).await,
                _ => {}
            }
        }
    }

    /// Pays, gives up, or forgets.
    async fn decide(&self, chance: &mut StdRng, who: BuyerId, order: OrderId) {
        match chance.random_range(0..10) {
            0 => {
                let payment = format!("p-{order}");
                self.call(self.shop.try_pay(order, who, &payment)).await;
            }
            1..8 => drop(self.call(self.shop.try_cancel(order, who)).await),
            _ => {}
        }
    }

    /// Leaves the list, or waits to be served and forgets.
    async fn leave(&self, chance: &mut StdRng, who: BuyerId, voucher: VoucherId) {
        if chance.random_range(0..2) == 0 {
            self.call(self.shop.try_leave(voucher, who)).await;
        }
    }

    /// Round after round. Returns when the crowd has gone.
    async fn reconcile(&self, rounds: &Cell<usize>) {
        while !self.is_over() {
            if begin(&self.shop).await {
                rounds.set(rounds.get() + 1);
            } else {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Somebody apart from the crowd, whose orders are known.
struct Apart {
    paid: (BuyerId, OrderId),
    given_up: (BuyerId, OrderId),
}

impl Apart {
    async fn come(shop: &Shop, voucher: VoucherId) -> Self {
        let [one, other] = [buyer(), buyer()];
        let paid = shop.buy_settled(voucher, one).await;
        let reply = shop.pay(paid, one, &format!("p-{paid}")).await;
        reply.assert_status(200);
        let given_up = shop.buy_settled(voucher, other).await;
        shop.cancel(given_up, other).await.assert_status(200);
        shop.balanced(voucher).await;
        Self {
            paid: (one, paid),
            given_up: (other, given_up),
        }
    }
}

/// What was planted, and how many reports there were.
type Planted = (OrderId, &'static str, u64);

/// One of each kind: a holder goes, a holder stays, a unit is given without a message, and messages
/// hang. Each is about an order of its own.
async fn plant(
    street: &Street,
    gate: &Gate,
    apart: &Apart,
    free_id: OrderId,
    planted: &RefCell<Vec<Planted>>,
) {
    let voucher = street.vouchers[1];
    let last = listed(&street.shop)
        .await
        .last()
        .map_or(0, |report| report.id);
    let (who, order) = apart.paid;
    assert!(gate.drop_holder(voucher, who).await);
    planted.borrow_mut().push((order, "holder_gone", last));
    let (who, order) = apart.given_up;
    assert!(gate.plant_holder(voucher, who, order, 1).await);
    planted.borrow_mut().push((order, "not_released", last));
    let nobody = buyer();
    assert!(gate.plant_holder(voucher, nobody, free_id, 1).await);
    planted.borrow_mut().push((free_id, "message_gone", last));
    for _ in 0..20 {
        gate.hang("ghost").await;
    }
}

async fn nothing_healthy_is_repaired_and_what_is_planted_is(site: Site) {
    let mut row = Row::begin();
    let process = site.start().await;
    let history = Arc::new(History::default());
    let shop = process.shop().writing(&history);
    first_round(&shop).await;
    let (gate, ledger) = (site.gate().await, site.ledger().await);
    let vouchers = [
        shop.sell(&Offer::of(20).waitlist(20).payment_window_s(2))
            .await,
        shop.sell(&Offer::of(100_000).payment_window_s(2)).await,
    ];
    let mut apart = Vec::new();
    for _ in 0..PLANTS {
        apart.push(Apart::come(&shop, vouchers[1]).await);
    }
    let before = listed(&shop).await.len();
    let load = Duration::from_secs(seconds());
    let street = Street {
        shop: shop.clone(),
        vouchers,
        until: Instant::now() + load,
        answers: Cell::new(0),
        under_way: Cell::new(0),
    };
    let planted = RefCell::new(Vec::new());
    let mischief = async {
        for (turn, apart) in (0..).zip(&apart) {
            tokio::time::sleep(load / 5).await;
            // Lower than every id that is drawn.
            let free_id = OrderId::new(4_711 + turn);
            row.struck("errors are planted", street.under_way.get());
            plant(&street, &gate, apart, free_id, &planted).await;
        }
    };
    let rounds = Cell::new(0);
    let people = join_all((0..PEOPLE).map(|seed| street.walk(seed)));
    join!(people, mischief, street.reconcile(&rounds));
    // What was planted last has two rounds as well, on however slow a machine.
    for _ in 0..2 {
        let limit = Duration::from_secs(40);
        eventually("another round", limit, async || {
            begin(&shop)
                .await
                .then_some(())
                .ok_or_else(|| "one is under way".to_owned())
        })
        .await;
    }

    let reports = all_reports(&shop, before, rounds.get() + 2).await;
    let planted = planted.into_inner();
    eprintln!(
        "{} answers and {} rounds in {load:?}",
        street.answers.get(),
        reports.len()
    );
    let answers = street.answers.get();
    judge(&reports, &planted);
    everybody_goes_home(&shop, &vouchers).await;
    let verdict = audit(&shop, &history, &vouchers, Some(&ledger)).await;
    verdict.assert_holds().assert_none_rejected();
    everything_happened(&verdict.facts);

    // With everybody gone the gate's count can be seen to be off, too.
    assert!(gate.shift_free(vouchers[1], -5).await);
    let report = round(&shop, false).await;
    assert_eq!(report.of(vouchers[1]).free_drift, -5);
    let report = round_about(&shop, vouchers[1]).await;
    report.of(vouchers[0]).assert_sound();
    report.of(vouchers[1]).assert_sound();
    let (rounds, errors) = (reports.len(), planted.len());
    row.ended(&format!(
        "{answers} answers, {rounds} rounds, {errors} errors repaired and nothing else"
    ));
}

/// The reports of all rounds that were begun.
async fn all_reports(shop: &Shop, before: usize, rounds: usize) -> Vec<Report> {
    let limit = Duration::from_secs(40);
    eventually("every round is reported", limit, async || {
        let mut reports = listed(shop).await;
        let reports = reports.split_off(before);
        let count = reports.len();
        (count >= rounds)
            .then_some(reports)
            .ok_or(format!("{count} of {rounds}"))
    })
    .await
}

/// Just what was planted was found, and repaired, within two rounds of its planting. The one under
/// way may have looked already.
fn judge(reports: &[Report], planted: &[Planted]) {
    let repaired: BTreeSet<(OrderId, &str)> = reports
        .iter()
        .flat_map(Report::differences)
        .filter(|difference| difference.repaired)
        .map(|difference| (difference.order, difference.kind.as_str()))
        .collect();
    let expected: BTreeSet<(OrderId, &str)> = planted
        .iter()
        .map(|(order, kind, _)| (*order, *kind))
        .collect();
    assert_eq!(repaired, expected, "repaired, and planted");
    for report in reports {
        let drifts = report.findings.iter().map(|found| found.free_drift);
        assert_eq!(drifts.filter(|drift| *drift != 0).count(), 0, "{report:?}");
    }
    for (order, kind, last) in planted {
        let after = reports.iter().filter(|report| report.id > *last);
        let about = after.take(3).flat_map(Report::differences);
        let found = about.filter(|it| it.order == *order && it.kind == *kind && it.repaired);
        assert_eq!(found.count(), 1, "{order} {kind}, planted after {last}");
    }
}

/// Payment windows end, and the list empties.
async fn everybody_goes_home(shop: &Shop, vouchers: &[VoucherId]) {
    for voucher in vouchers {
        eventually("all is quiet", Duration::from_mins(2), async || {
            let tally = shop.balance(*voucher).await.tally;
            let waiting = shop.voucher(*voucher).await.number("waitlist_length");
            let only_planted = tally.awaiting_payment == 0 && waiting == 0;
            only_planted
                .then_some(())
                .ok_or(format!("{tally:?}, {waiting} wait"))
        })
        .await;
    }
}

/// A pass must mean something.
fn everything_happened(facts: &seckill_tests::harness::Facts) {
    let statuses: BTreeSet<OrderStatus> = facts.orders.values().map(|order| order.status).collect();
    let expected = [
        OrderStatus::Paid,
        OrderStatus::Cancelled,
        OrderStatus::Expired,
        OrderStatus::Withdrawn,
    ];
    for status in expected {
        assert!(statuses.contains(&status), "nothing was {status:?}");
    }
}

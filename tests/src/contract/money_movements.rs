//! `MoneyMovements`, and how money is written down in a `UnitOfWork`.

use futures::join;
use seckill_application::ports::{LedgerPorts, PaymentOutcome, PaymentRecord};
use seckill_domain::{Money, OrderId, PaymentId, Refund, RefundReason};

use super::desk::Desk;
use super::stall::new_order;
use super::{LedgerHarness, promises};

promises! { money_movements over dyn LedgerHarness:
    a_payment_is_written_down_once_and_told_again_as_it_was,
    a_payment_is_kept_with_all_that_is_known_of_it,
    a_payment_that_is_not_committed_never_came,
    of_two_notices_at_once_one_is_the_first,
    a_payment_id_is_told_from_another_by_every_character,
    a_refund_is_kept_with_all_that_is_known_of_it,
    a_payment_is_refunded_once,
    a_refund_that_is_not_committed_never_was,
    of_two_refunds_at_once_one_is_written,
    refunds_are_listed_newest_first_page_by_page,
    refunds_wait_to_be_sent_oldest_first,
    a_refund_that_was_sent_is_listed_as_sent,
    sending_may_be_repeated,
}

fn money(minor: u64) -> Money {
    Money {
        minor,
        currency: "CNY".parse().expect("a currency"),
    }
}

fn id(text: &str) -> PaymentId {
    text.parse().expect("a payment id")
}

fn payment(text: &str, order: OrderId, outcome: PaymentOutcome) -> PaymentRecord {
    PaymentRecord {
        payment: id(text),
        order,
        amount: money(8_000),
        outcome,
    }
}

async fn record(ports: &LedgerPorts, payment: &PaymentRecord) -> Option<PaymentRecord> {
    let mut unit = ports.ledger.begin().await.unwrap();
    let first = unit.record_payment(payment).await.unwrap();
    unit.commit().await.unwrap();
    first
}

async fn refund(ports: &LedgerPorts, payment: &str, minor: u64, reason: RefundReason) {
    let mut unit = ports.ledger.begin().await.unwrap();
    unit.record_refund(new_order(), &id(payment), money(minor), reason)
        .await
        .unwrap();
    unit.commit().await.unwrap();
}

async fn refunds(ports: &LedgerPorts) -> Vec<Refund> {
    let page = ports.money.refunds(None, 100).await.unwrap();
    assert_eq!(page.next, None);
    page.items
}

async fn unsent(ports: &LedgerPorts, max: usize) -> Vec<Refund> {
    ports.money.unsent(max).await.unwrap()
}

async fn a_payment_is_written_down_once_and_told_again_as_it_was(harness: &dyn LedgerHarness) {
    let ports = harness.ledger();
    let first = payment("pay-1", new_order(), PaymentOutcome::Paid);
    assert_eq!(record(ports, &first).await, None);
    assert_eq!(record(ports, &first).await, Some(first.clone()));
    let other = PaymentRecord {
        amount: money(1),
        ..payment("pay-1", new_order(), PaymentOutcome::RefundedTooLate)
    };
    let other_process = harness.another_process().await;
    assert_eq!(record(&other_process, &other).await, Some(first.clone()));
    assert_eq!(record(ports, &other).await, Some(first));
}

async fn a_payment_is_kept_with_all_that_is_known_of_it(harness: &dyn LedgerHarness) {
    let ports = harness.ledger();
    let outcomes = [
        PaymentOutcome::Paid,
        PaymentOutcome::RefundedTooLate,
        PaymentOutcome::RefundedTooEarly,
        PaymentOutcome::RefundedSecond,
        PaymentOutcome::RefundedWrongAmount,
        PaymentOutcome::RefundedUnknownOrder,
    ];
    for (number, outcome) in outcomes.into_iter().enumerate() {
        let order = OrderId::new(u64::MAX - number as u64);
        let first = PaymentRecord {
            amount: Money {
                minor: number as u64 * 1_000_000_000_000,
                currency: "JPY".parse().expect("a currency"),
            },
            ..payment(&format!("{}{number}", "x".repeat(63)), order, outcome)
        };
        assert_eq!(record(ports, &first).await, None);
        assert_eq!(record(ports, &first).await, Some(first));
    }
}

async fn a_payment_that_is_not_committed_never_came(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let first = payment("pay-1", new_order(), PaymentOutcome::RefundedTooLate);
    let mut unit = desk.begin().await;
    assert_eq!(unit.record_payment(&first).await.unwrap(), None);
    let again = unit.record_payment(&first).await.unwrap();
    assert_eq!(again, Some(first.clone()), "seen by its own transaction");
    drop(unit);
    let second = payment("pay-1", new_order(), PaymentOutcome::Paid);
    assert_eq!(record(&desk.ports, &second).await, None);
}

async fn of_two_notices_at_once_one_is_the_first(harness: &dyn LedgerHarness) {
    let ports = harness.ledger();
    let other_process = harness.another_process().await;
    for number in 0..5 {
        let name = format!("pay-{number}");
        let one = payment(&name, new_order(), PaymentOutcome::Paid);
        let two = payment(&name, new_order(), PaymentOutcome::RefundedSecond);
        let told = join!(record(ports, &one), record(&other_process, &two));
        let first_was_first = told == (None, Some(one));
        let second_was_first = told == (Some(two), None);
        assert!(first_was_first || second_was_first, "{told:?}");
    }
}

async fn a_payment_id_is_told_from_another_by_every_character(harness: &dyn LedgerHarness) {
    let ports = harness.ledger();
    for name in ["pay-a", "pay-A", "pay_a", "pay-a.", "pay%a"] {
        let first = payment(name, new_order(), PaymentOutcome::Paid);
        assert_eq!(record(ports, &first).await, None, "{name}");
        refund(ports, name, 1, RefundReason::TooLate).await;
    }
    assert_eq!(refunds(ports).await.len(), 5);
}

async fn a_refund_is_kept_with_all_that_is_known_of_it(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let reasons = [
        RefundReason::TooLate,
        RefundReason::TooEarly,
        RefundReason::SecondPayment,
        RefundReason::WrongAmount,
        RefundReason::UnknownOrder,
        RefundReason::Requested,
    ];
    for (number, reason) in reasons.into_iter().enumerate() {
        let order = OrderId::new(u64::MAX - number as u64);
        let amount = money(1_000_000_000_000 * number as u64);
        let payment = id(&format!("pay-{number}"));
        let before = desk.now().await;
        let mut unit = desk.begin().await;
        unit.record_refund(order, &payment, amount, reason)
            .await
            .unwrap();
        unit.commit().await.unwrap();
        let after = desk.now().await;
        let newest = refunds(&desk.ports).await.remove(0);
        assert!((before..=after).contains(&newest.created_at));
        let expected = Refund {
            id: newest.id,
            order,
            payment,
            amount,
            reason,
            sent: false,
            created_at: newest.created_at,
        };
        assert_eq!(newest, expected);
    }
}

async fn a_payment_is_refunded_once(harness: &dyn LedgerHarness) {
    let ports = harness.ledger();
    refund(ports, "pay-1", 10, RefundReason::TooLate).await;
    refund(ports, "pay-1", 20, RefundReason::Requested).await;
    let mut unit = ports.ledger.begin().await.unwrap();
    for minor in [30, 40] {
        let reason = RefundReason::SecondPayment;
        unit.record_refund(new_order(), &id("pay-2"), money(minor), reason)
            .await
            .unwrap();
    }
    unit.commit().await.unwrap();
    let amounts: Vec<u64> = refunds(ports)
        .await
        .iter()
        .map(|it| it.amount.minor)
        .collect();
    assert_eq!(amounts, [30, 10], "the first word counts");
}

async fn a_refund_that_is_not_committed_never_was(harness: &dyn LedgerHarness) {
    let ports = harness.ledger();
    let mut unit = ports.ledger.begin().await.unwrap();
    let reason = RefundReason::TooLate;
    unit.record_refund(new_order(), &id("pay-1"), money(1), reason)
        .await
        .unwrap();
    assert_eq!(refunds(ports).await, []);
    drop(unit);
    assert_eq!(refunds(ports).await, []);
    assert_eq!(unsent(ports, 10).await, []);
}

async fn of_two_refunds_at_once_one_is_written(harness: &dyn LedgerHarness) {
    let ports = harness.ledger();
    let other = harness.another_process().await;
    let reason = RefundReason::Requested;
    join!(
        refund(ports, "pay-1", 10, reason),
        refund(&other, "pay-1", 10, reason),
        refund(&other, "pay-2", 10, reason),
    );
    assert_eq!(refunds(ports).await.len(), 2);
}

async fn refunds_are_listed_newest_first_page_by_page(harness: &dyn LedgerHarness) {
    let ports = harness.ledger();
    for number in 1..=7 {
        let name = format!("pay-{number}");
        refund(ports, &name, number, RefundReason::TooLate).await;
    }
    let mut pages = Vec::new();
    let mut before = None;
    loop {
        let page = ports.money.refunds(before, 3).await.unwrap();
        assert_eq!(page.next.is_some(), page.items.len() == 3);
        if let Some(next) = page.next {
            assert_eq!(Some(next), page.items.last().map(|it| it.id));
        }
        pages.extend(page.items.iter().map(|it| it.amount.minor));
        match page.next {
            Some(next) => before = Some(next),
            None => break,
        }
    }
    assert_eq!(pages, [7, 6, 5, 4, 3, 2, 1]);
}

async fn refunds_wait_to_be_sent_oldest_first(harness: &dyn LedgerHarness) {
    let ports = harness.ledger();
    for number in 1..=4 {
        let name = format!("pay-{number}");
        refund(ports, &name, number, RefundReason::TooLate).await;
    }
    let first = unsent(ports, 2).await;
    let amounts: Vec<u64> = first.iter().map(|it| it.amount.minor).collect();
    assert_eq!(amounts, [1, 2]);
    ports.money.sent(first[0].id).await.unwrap();
    let rest = unsent(ports, 10).await;
    let amounts: Vec<u64> = rest.iter().map(|it| it.amount.minor).collect();
    assert_eq!(amounts, [2, 3, 4]);
}

async fn a_refund_that_was_sent_is_listed_as_sent(harness: &dyn LedgerHarness) {
    let ports = harness.ledger();
    refund(ports, "pay-1", 1, RefundReason::TooLate).await;
    refund(ports, "pay-2", 2, RefundReason::TooLate).await;
    let first = unsent(ports, 1).await.remove(0);
    ports.money.sent(first.id).await.unwrap();
    let listed: Vec<bool> = refunds(ports).await.iter().map(|it| it.sent).collect();
    assert_eq!(listed, [false, true]);
}

async fn sending_may_be_repeated(harness: &dyn LedgerHarness) {
    let ports = harness.ledger();
    refund(ports, "pay-1", 1, RefundReason::TooLate).await;
    let first = unsent(ports, 1).await.remove(0);
    for _ in 0..2 {
        ports.money.sent(first.id).await.unwrap();
    }
    assert_eq!(unsent(ports, 10).await, []);
}

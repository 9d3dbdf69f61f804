//! Random commands to an order, in any order and at any time.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use seckill_domain::invariants;
use seckill_domain::{
    BuyerId, Currency, Forbidden, Money, Order, OrderId, OrderStatus, PaymentId, RejectReason,
    Stage, Ticket, Timestamp, Transition, VoucherId,
};

#[derive(Debug, Clone)]
enum Command {
    Pay(u8),
    Cancel,
    Expire,
    Refund,
    Promote,
    Leave(Stage),
    Wait(u64),
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        4 => (0..3_u8).prop_map(Command::Pay),
        2 => Just(Command::Cancel),
        3 => Just(Command::Expire),
        2 => Just(Command::Refund),
        3 => Just(Command::Promote),
        1 => prop_oneof![
            Just(Stage::Withdrawn),
            Just(Stage::ClosedOut),
            Just(Stage::Rejected { reason: RejectReason::NotEnoughUnits }),
        ]
        .prop_map(Command::Leave),
        4 => (1..600_u64).prop_map(Command::Wait),
    ]
}

const WINDOW: Duration = Duration::from_secs(1);

fn order(stage: Stage) -> Result<Order, TestCaseError> {
    let currency: Currency = "CNY".parse().map_err(|_| TestCaseError::fail("currency"))?;
    let waiting = stage == Stage::Waiting;
    let start = Timestamp::from_millis(0);
    Ok(Order {
        id: OrderId::new(609_848_294_759_202_817),
        voucher: VoucherId::new(1),
        buyer: BuyerId::new(42),
        quantity: 2,
        amount: Money {
            minor: 1_600,
            currency,
        },
        key: None,
        created_at: start,
        ticket: waiting.then(|| Ticket::new(7)),
        expires_at: (stage == Stage::PendingPayment).then(|| start.plus(WINDOW)),
        stage,
    })
}

fn first_stage() -> impl Strategy<Value = Stage> {
    prop_oneof![
        4 => Just(Stage::PendingPayment),
        3 => Just(Stage::Waiting),
        1 => Just(Stage::Queued),
    ]
}

fn tell(
    order: &mut Order,
    command: &Command,
    now: Timestamp,
) -> Result<Result<Transition, Forbidden>, TestCaseError> {
    Ok(match command {
        Command::Pay(id) => {
            let payment: PaymentId = format!("pay-{id}")
                .parse()
                .map_err(|_| TestCaseError::fail("payment id"))?;
            order.pay(&payment, now)
        }
        Command::Cancel => order.cancel(now),
        Command::Expire => order.expire(now),
        Command::Refund => order.refund(),
        Command::Promote => order.promote(now.plus(WINDOW)),
        Command::Leave(into) => order.leave_waitlist(into.clone()),
        Command::Wait(_) => Ok(Transition::AlreadyApplied),
    })
}

/// How the units move when an order goes from one stage to another: taken, returned.
fn moved(from: OrderStatus, to: OrderStatus) -> (u32, u32) {
    (
        u32::from(!from.is_live() && to.is_live()),
        u32::from(from.is_live() && !to.is_live()),
    )
}

/// Whether the drawing of an order's life in the design has this arrow.
fn is_an_arrow(from: OrderStatus, to: OrderStatus) -> bool {
    use OrderStatus::{
        Cancelled, ClosedOut, Expired, Paid, PendingPayment, Refunded, Rejected, Waiting, Withdrawn,
    };
    matches!(
        (from, to),
        (Waiting, PendingPayment | Withdrawn | ClosedOut | Rejected)
            | (PendingPayment, Paid | Cancelled | Expired)
            | (Paid, Refunded)
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_is_asked_an_order_lives_its_life_once(
        stage in first_stage(),
        commands in vec(command(), 1..30),
    ) {
        let mut order = order(stage)?;
        let mut now = Timestamp::from_millis(0);
        let (mut taken, mut returned) = (u32::from(order.status().is_live()), 0);
        let mut paid = None;
        let mut expired = false;
        for command in commands {
            if let Command::Wait(millis) = command {
                now = now.plus(Duration::from_millis(millis));
                continue;
            }
            let before = order.clone();
            let reply = tell(&mut order, &command, now)?;
            let (from, to) = (before.status(), order.status());
            if reply == Ok(Transition::Applied) {
                prop_assert!(is_an_arrow(from, to), "{from:?} to {to:?} by {command:?}");
                prop_assert!(!from.is_final() || from == OrderStatus::Paid);
            } else {
                prop_assert_eq!(&order, &before, "refused or repeated, it changes nothing");
            }
            let again = tell(&mut order, &command, now)?;
            prop_assert_ne!(again, Ok(Transition::Applied), "the same command twice");
            if reply.is_ok() {
                prop_assert_eq!(again, Ok(Transition::AlreadyApplied), "repeating is no error");
            }

            if let Stage::Paid { payment } = &order.stage {
                let first = paid.get_or_insert_with(|| payment.clone());
                prop_assert_eq!(&*first, payment, "another payment took its place");
                if from != OrderStatus::Paid {
                    prop_assert!(before.expires_at.is_some_and(|end| now < end), "paid too late");
                }
            }
            if to == OrderStatus::Expired && from != OrderStatus::Expired {
                prop_assert!(before.is_overdue(now), "expired too early");
            }
            expired |= to == OrderStatus::Expired;
            prop_assert!(!(expired && paid.is_some()), "I6: paid and expired");
            if before.expires_at.is_some() {
                prop_assert_eq!(before.expires_at, order.expires_at, "the end of the window moved");
            }
            let (takes, returns) = moved(from, to);
            taken += takes;
            returned += returns;
            prop_assert!(invariants::once(taken, returned), "I5: {taken} and {returned}");
        }
    }

    #[test]
    fn an_order_that_is_over_stays_as_it_is(commands in vec(command(), 1..12)) {
        let over = [
            Stage::Cancelled,
            Stage::Expired,
            Stage::Rejected { reason: RejectReason::NoStock },
            Stage::Withdrawn,
            Stage::ClosedOut,
        ];
        for stage in over {
            let mut order = order(Stage::PendingPayment)?;
            order.stage = stage.clone();
            let before = order.clone();
            for command in &commands {
                let reply = tell(&mut order, command, Timestamp::from_millis(5_000))?;
                prop_assert_ne!(reply, Ok(Transition::Applied));
                prop_assert_eq!(&order, &before);
            }
        }
    }
}

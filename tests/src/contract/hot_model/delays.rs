//! A random life of a delay queue.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use rand::RngExt as _;
use seckill_application::ports::HotPath;
use seckill_domain::{OrderId, Timestamp};

use super::{SHORT, STEPS, Sides};

/// Ids of one length, as all real ones are: in text, too, they stand in their order.
const ORDERS: RangeInclusive<u64> = 100..=123;
/// Longer than a life.
const HOUR_MS: i64 = 3_600_000;

#[derive(Debug)]
enum Question {
    Schedule(Vec<(OrderId, Timestamp)>),
    Claim { max: usize, hold: Duration },
    Complete(Vec<OrderId>),
}

/// What came of it: orders that were claimed, and how many are scheduled.
async fn ask(hot: &HotPath, question: &Question) -> (Vec<OrderId>, u64) {
    let delays = &hot.delays;
    let mut claimed = Vec::new();
    match question {
        Question::Schedule(due) => delays.schedule(due).await.unwrap(),
        Question::Claim { max, hold } => claimed = delays.claim_due(*max, *hold).await.unwrap(),
        Question::Complete(orders) => delays.complete(orders).await.unwrap(),
    }
    (claimed, delays.scheduled().await.unwrap())
}

/// Some of the orders, each at most once.
fn some(sides: &mut Sides<'_>) -> Vec<OrderId> {
    let count = sides.random.random_range(0..4);
    let mut orders = HashSet::new();
    let drawn = (0..count).map(|_| OrderId::new(sides.random.random_range(ORDERS)));
    drawn.filter(|order| orders.insert(*order)).collect()
}

/// Long over or far away, and never the same moment twice.
fn moments(sides: &mut Sides<'_>, step: usize, began: Timestamp) -> Vec<(OrderId, Timestamp)> {
    let orders = some(sides).into_iter().enumerate();
    let moments: Vec<_> = orders
        .map(|(place, order)| {
            let order_of_time = i64::try_from(step * 8 + place).expect("few steps");
            let sign = if sides.random.random_range(0..10) < 7 {
                -1
            } else {
                1
            };
            let off = sign * (HOUR_MS + sides.random.random_range(0..100) * 10_000 + order_of_time);
            (order, Timestamp::from_millis(began.as_millis() + off))
        })
        .collect();
    moments
}

/// Lives it, comparing each answer.
pub(super) async fn live(mut sides: Sides<'_>) {
    let began = sides.harness.gate_time().await;
    let (mut claimed, mut again) = (HashSet::new(), 0);
    for step in 0..STEPS {
        let question = match sides.random.random_range(0..100) {
            0..40 => Question::Schedule(moments(&mut sides, step, began)),
            40..75 => Question::Claim {
                max: sides.random.random_range(1..=4),
                hold: sides.span(),
            },
            _ => Question::Complete(some(&mut sides)),
        };
        let process = sides.random.random_range(0..2);
        let real = ask(&sides.real[process], &question).await;
        let model = ask(&sides.model[process], &question).await;
        let seed = sides.seed;
        assert_eq!(real, model, "step {step} of seed {seed}: {question:?}");
        again += model.0.iter().filter(|it| !claimed.insert(**it)).count();
        if matches!(question, Question::Claim { hold, .. } if hold == SHORT) {
            sides.short_time_goes_by().await;
        }
    }
    assert!(
        claimed.len() > 10 && again > 10,
        "{} orders, {again} again",
        claimed.len()
    );
}

//! What the gate is seen to do.

use std::sync::Arc;

use seckill_application::ports::PurchaseGate;
use seckill_decorators::{GateMeters, GateOutcome, MeteredGate};
use seckill_domain::VoucherId;

use crate::inner::{Hand, Inner, Mood, attempt};

#[tokio::test]
async fn attempts_are_counted_by_outcome_and_calls_by_latency() {
    let inner = Inner::new();
    inner.replies.add_permits(3);
    let meters = Arc::new(GateMeters::default());
    let gate = MeteredGate::new(inner.clone(), Arc::new(Hand::default()), meters.clone());
    let three: Vec<_> = (1..=3).flat_map(attempt).collect();
    gate.admit(VoucherId::new(1), &three).await.unwrap();
    inner.set(Mood::NotLoaded);
    gate.admit(VoucherId::new(1), &three).await.unwrap();
    inner.set(Mood::Unknown);
    gate.admit(VoucherId::new(1), &three[..1])
        .await
        .unwrap_err();

    let seen = meters.snapshot();
    let count = |outcome| {
        let index = GateOutcome::ALL.iter().position(|known| *known == outcome);
        seen.outcomes[index.unwrap()]
    };
    assert_eq!(count(GateOutcome::Granted), 3);
    assert_eq!(count(GateOutcome::NotLoaded), 3);
    assert_eq!(count(GateOutcome::Fault), 1);
    assert_eq!(seen.outcomes.iter().sum::<u64>(), 7);
    assert_eq!((seen.calls, seen.buckets[0]), (3, 3));
}

#[test]
fn labels_are_in_the_order_of_the_counts() {
    for (index, outcome) in GateOutcome::ALL.into_iter().enumerate() {
        assert_eq!(outcome as usize, index, "{}", outcome.label());
    }
}

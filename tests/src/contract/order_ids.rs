//! `OrderIds`: no id is ever issued twice.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::join_all;
use seckill_application::ports::OrderIds;
use seckill_domain::OrderId;

use super::{Harm, HotHarness, promises};

promises! { order_ids over dyn HotHarness:
    ids_rise_within_a_process,
    two_processes_never_issue_the_same,
    asked_all_at_once_they_still_differ,
    ids_issued_before_a_loss_are_not_issued_after_it,
}

async fn issue(ids: &dyn OrderIds, count: usize) -> Vec<OrderId> {
    let mut issued = Vec::with_capacity(count);
    for _ in 0..count {
        issued.push(ids.next().await.unwrap());
    }
    issued
}

fn assert_distinct<'a>(issued: impl IntoIterator<Item = &'a OrderId>) {
    let mut seen = HashSet::new();
    for id in issued {
        assert!(seen.insert(*id), "{id} was issued twice");
    }
}

async fn ids_rise_within_a_process(harness: &dyn HotHarness) {
    let ids = &*harness.hot().order_ids;
    let mut issued = issue(ids, 2_500).await;
    harness.elapse(Duration::from_millis(50)).await;
    issued.extend(issue(ids, 2_500).await);
    assert!(issued.is_sorted_by(|earlier, later| earlier < later));
}

async fn two_processes_never_issue_the_same(harness: &dyn HotHarness) {
    let processes = [
        harness.another_process().await,
        harness.another_process().await,
    ];
    let mut issued = Vec::new();
    for round in 0..20 {
        issued.extend(issue(&*harness.hot().order_ids, 100).await);
        let other = &processes[round % 2];
        issued.extend(issue(&*other.order_ids, 100).await);
    }
    assert_distinct(&issued);
}

async fn asked_all_at_once_they_still_differ(harness: &dyn HotHarness) {
    let other = harness.another_process().await;
    let asks = (0..40).map(|n| {
        let hot = if n % 2 == 0 { harness.hot() } else { &other };
        issue(&*hot.order_ids, 50)
    });
    let issued = join_all(asks).await;
    assert_distinct(issued.iter().flatten());
}

/// Bug report B38: a counter that is lost begins again, in the same second. Refusing for a while is
/// allowed.
async fn ids_issued_before_a_loss_are_not_issued_after_it(harness: &dyn HotHarness) {
    let mut issued = issue(&*harness.hot().order_ids, 1_500).await;
    harness.harm(Harm::Wipe).await;
    let other = harness.another_process().await;
    for round in 0..3_000 {
        let ids = if round % 2 == 0 {
            &harness.hot().order_ids
        } else {
            &other.order_ids
        };
        match ids.next().await {
            Ok(id) => issued.push(id),
            Err(fault) => assert!(fault.is_retryable(), "{}", fault.chain()),
        }
    }
    assert_distinct(&issued);
}

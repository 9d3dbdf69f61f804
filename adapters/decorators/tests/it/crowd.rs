//! A real crowd on several threads, of which some lose patience.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use futures::poll;
use seckill_application::ports::PurchaseGate;
use seckill_decorators::BatchSettings;
use seckill_domain::VoucherId;
use tokio::task::JoinSet;

use crate::inner::{Inner, attempt, granted};

const CROWD: u64 = 20_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn everybody_who_stays_is_answered_once() {
    for calls_max in [1, 2] {
        let inner = Inner::new();
        inner.replies.add_permits(usize::try_from(CROWD).unwrap());
        inner.yields.store(5, Ordering::SeqCst);
        let (gate, _) = inner.batched(BatchSettings {
            calls_max,
            queue_max: 100_000,
            ..BatchSettings::default()
        });
        let gate = Arc::new(gate);
        let mut tasks = JoinSet::new();
        for order in 1..=CROWD {
            let gate = gate.clone();
            tasks.spawn(async move {
                let voucher = VoucherId::new(1 + order % 3);
                let attempt = attempt(order);
                let reply = gate.admit(voucher, &attempt);
                if order % 5 > 0 {
                    return Some(granted(reply.await));
                }
                let mut reply = reply;
                for _ in 0..order / 5 % 7 {
                    if let Poll::Ready(reply) = poll!(&mut reply) {
                        return Some(granted(reply));
                    }
                    tokio::task::yield_now().await;
                }
                None
            });
        }
        let mut answered = HashSet::new();
        while let Some(order) = tasks.join_next().await {
            let Some(order) = order.unwrap() else {
                continue;
            };
            assert!(answered.insert(order), "{order} was answered twice");
        }
        let stayed = (1..=CROWD).filter(|order| order % 5 > 0);
        for order in stayed {
            assert!(answered.contains(&order), "{order} was stranded");
        }
        let mut sent = HashSet::new();
        let calls = inner.calls();
        assert!(
            calls.len() < usize::try_from(CROWD).unwrap() / 4,
            "{} calls",
            calls.len()
        );
        for call in calls {
            assert!(call.len() <= 32);
            for order in call {
                assert!(sent.insert(order), "{order} was sent twice");
            }
        }
    }
}

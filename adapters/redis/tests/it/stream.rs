//! Reading, acknowledging, taking over and trimming.

use std::time::Duration;

use seckill_application::ports::{Backlog, Delivery, EntryId, PartitionState, StreamReply};
use seckill_domain::{Admission, Epoch, OrderId, Sequence};

use crate::stage::{EPOCH, PARTITION, Stage, VOUCHER, attempt, granted, key, pause};

const NOW: Duration = Duration::ZERO;

/// A sale with `count` entries of one grant each.
async fn sold(count: u64) -> Stage {
    let stage = Stage::selling(5_000, |_| {}).await;
    for n in 1..=count {
        stage.buy(n, n, 1).await;
    }
    stage
}

async fn read(stage: &Stage, consumer: &str, max: usize) -> Vec<Delivery> {
    let reply = stage
        .hot
        .stream
        .read_new(PARTITION, EPOCH, consumer, max, NOW)
        .await;
    match reply.unwrap() {
        StreamReply::Entries(entries) => entries,
        StreamReply::Missing => panic!("no stream"),
    }
}

fn ids(entries: &[Delivery]) -> Vec<EntryId> {
    entries.iter().map(|it| it.id).collect()
}

async fn ack(stage: &Stage, ids: &[EntryId], applied: u64) {
    let applied = Sequence::new(applied);
    stage
        .hot
        .stream
        .ack(PARTITION, EPOCH, ids, applied)
        .await
        .unwrap();
}

async fn trim(stage: &Stage, up_to: EntryId) -> usize {
    stage
        .hot
        .stream
        .trim(PARTITION, EPOCH, up_to, NOW)
        .await
        .unwrap()
}

#[tokio::test]
async fn an_entry_is_given_to_one_and_stays_his_until_acknowledged() {
    let stage = sold(5).await;
    let first = read(&stage, "a", 3).await;
    let rest = read(&stage, "b", 10).await;
    assert_eq!((first.len(), rest.len()), (3, 2));
    assert_eq!(read(&stage, "a", 10).await, []);
    let stream = &stage.hot.stream;
    let expected = Backlog {
        decisions: 5,
        pending: 5,
        length: 5,
    };
    assert_eq!(stream.backlog(PARTITION).await.unwrap(), expected);
    ack(&stage, &ids(&first), 3).await;
    ack(&stage, &ids(&first), 2).await;
    let expected = Backlog {
        decisions: 2,
        pending: 2,
        length: 5,
    };
    assert_eq!(
        stream.backlog(PARTITION).await.unwrap(),
        expected,
        "repeatable, never back"
    );
    let after = stage.entries(first[2].id).await;
    assert_eq!(after, rest, "delivered or not");
    let partition = stage.hot.loader.partition(PARTITION).await.unwrap();
    assert!(matches!(partition, PartitionState::Open { applied, .. } if applied.get() == 3));
}

#[tokio::test]
async fn an_acknowledgement_for_another_epoch_does_nothing() {
    let stage = sold(2).await;
    let entries = read(&stage, "a", 10).await;
    let (epoch, applied) = (Epoch::new(9), Sequence::new(2));
    stage
        .hot
        .stream
        .ack(PARTITION, epoch, &ids(&entries), applied)
        .await
        .unwrap();
    let backlog = stage.hot.stream.backlog(PARTITION).await.unwrap();
    assert_eq!((backlog.decisions, backlog.pending), (2, 2));
    let trimmed = stage
        .hot
        .stream
        .trim(PARTITION, epoch, entries[1].id, NOW)
        .await;
    assert_eq!(trimmed.unwrap(), 0);
}

/// Stands for: the driver's response timeout kills blocking reads, and what arrives afterwards is
/// pending for a call that is gone; a blocking read on a shared connection stalls everybody.
#[tokio::test]
async fn a_read_waits_longer_than_an_answer_may_take_and_stalls_nobody() {
    let stage = Stage::with(&[], |config| {
        config.response_timeout = Duration::from_millis(300);
    })
    .await;
    stage.open(crate::stage::terms(5), 5).await;
    let stream = stage.hot.stream.clone();
    let wait = Duration::from_secs(5);
    let waits = stream.read_new(PARTITION, EPOCH, "a", 10, wait);
    let buys = async {
        pause(700).await;
        let clock = crate::stage::RealClock::new();
        let bought = stage.buy(1, 1, 1).await;
        let took = seckill_application::ports::Clock::monotonic(&*clock);
        (bought, took)
    };
    let (read, (bought, took)) = futures::join!(waits, buys);
    assert_eq!(bought, granted(1));
    assert!(took < Duration::from_millis(250), "the gate took {took:?}");
    assert!(matches!(read.unwrap(), StreamReply::Entries(entries) if entries.len() == 1));
    let nothing = stream
        .read_new(PARTITION, EPOCH, "a", 10, Duration::from_millis(50))
        .await;
    assert_eq!(nothing.unwrap(), StreamReply::Entries(Vec::new()));
}

/// Stands for: the group is created at the newest entry, and earlier orders are never delivered
/// (hole 9).
#[tokio::test]
async fn a_group_that_is_gone_comes_back_at_the_start() {
    let stage = sold(3).await;
    let before = read(&stage, "a", 2).await;
    stage
        .raw::<i64>(&format!("XGROUP DESTROY {} writers", key("stream")))
        .await;
    let partition = stage.hot.loader.partition(PARTITION).await.unwrap();
    assert_eq!(partition, PartitionState::Missing);
    assert_eq!(stage.buy(4, 4, 1).await, granted(4), "the gate goes on");
    let all = read(&stage, "a", 10).await;
    assert_eq!((all.len(), ids(&all[..2])), (4, ids(&before)));
    let partition = stage.hot.loader.partition(PARTITION).await.unwrap();
    assert!(matches!(partition, PartitionState::Open { .. }));
}

/// Stands for: pending entries of a dead consumer are never taken over (hole 8); removing a
/// consumer destroys what it has pending; entries that were removed while pending.
#[tokio::test]
async fn what_others_were_given_is_taken_over() {
    let stage = sold(1_300).await;
    for (consumer, max) in [("dead", 500), ("late", 512), ("me", 100), ("dead", 150)] {
        assert_eq!(read(&stage, consumer, max).await.len(), max);
    }
    let all = stage.entries(EntryId::START).await;
    let gone = all[400].id.to_string();
    stage.command::<i64>(&["XDEL", &key("stream"), &gone]).await;
    let stream = &stage.hot.stream;
    let taken = stream.take_over(PARTITION, EPOCH, "me").await.unwrap();
    assert_eq!(taken, 1_262 - 1);
    let pending: Vec<(String, i64)> = {
        let summary: redis::Value = stage
            .raw(&format!("XPENDING {} writers", key("stream")))
            .await;
        let redis::Value::Array(parts) = summary else {
            panic!("{summary:?}")
        };
        redis::from_redis_value(parts[3].clone()).expect("consumers")
    };
    assert_eq!(pending, [("me".to_owned(), 1_261)]);
    let consumers: redis::Value = stage
        .raw(&format!("XINFO CONSUMERS {} writers", key("stream")))
        .await;
    assert!(matches!(consumers, redis::Value::Array(it) if it.len() == 1));
    let again = stream.take_over(PARTITION, EPOCH, "me").await.unwrap();
    assert_eq!(again, 1_261, "repeatable");
    let nowhere = Epoch::new(9);
    assert_eq!(stream.take_over(PARTITION, nowhere, "me").await.unwrap(), 0);
}

#[tokio::test]
async fn only_what_is_acknowledged_applied_and_old_is_removed() {
    let stage = sold(6).await;
    let entries = read(&stage, "a", 4).await;
    let ids = ids(&entries);
    let all = stage.entries(EntryId::START).await;
    ack(&stage, &[ids[0], ids[1], ids[3]], 4).await;
    assert_eq!(trim(&stage, EntryId::START).await, 0, "the ledger has none");
    let hour = Duration::from_hours(1);
    let young = stage
        .hot
        .stream
        .trim(PARTITION, EPOCH, all[5].id, hour)
        .await
        .unwrap();
    assert_eq!(young, 0);
    assert_eq!(trim(&stage, ids[0]).await, 1);
    let found = stage.hot.gate.find_order(OrderId::new(1)).await.unwrap();
    assert_eq!(found, None, "and out of the index");
    assert!(
        stage
            .hot
            .gate
            .find_order(OrderId::new(2))
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(
        trim(&stage, all[5].id).await,
        2,
        "not the pending one, nor what nobody was given"
    );
    let left: Vec<_> = stage
        .entries(EntryId::START)
        .await
        .iter()
        .map(|it| it.id)
        .collect();
    assert_eq!(left, [ids[2], all[4].id, all[5].id]);
    assert_eq!(stage.buy(7, 7, 1).await, granted(7), "the counts are right");
    let held = Admission::AlreadyHeld {
        orders: vec![OrderId::new(1)],
    };
    assert_eq!(stage.buy(1, 1, 1).await, held, "the holder still answers");
}

#[tokio::test]
async fn an_order_stays_in_the_index_while_anything_about_it_is_in_flight() {
    let stage = Stage::selling(1, |terms| terms.waitlist_capacity = 5).await;
    stage.batch(&[attempt(1, 1, 1), attempt(2, 2, 1)]).await;
    let joined = read(&stage, "a", 1).await;
    let update = seckill_domain::GateUpdate {
        voucher: VOUCHER,
        version: seckill_domain::GateVersion::new(2),
        changes: vec![seckill_domain::GateChange::AddUnits { units: 1 }],
    };
    stage.hot.gate.follow(&update).await.unwrap();
    ack(&stage, &ids(&joined), 2).await;
    assert_eq!(trim(&stage, joined[0].id).await, 1);
    assert_eq!(
        stage.hot.gate.find_order(OrderId::new(1)).await.unwrap(),
        None
    );
    let promoted = stage
        .hot
        .gate
        .find_order(OrderId::new(2))
        .await
        .unwrap()
        .expect("known");
    assert!(promoted.holds_units);
    assert_eq!(stage.buy(2, 2, 1).await, granted(2));
}

#[tokio::test]
async fn a_trim_is_bounded_and_goes_on() {
    let stage = Stage::selling(5_000, |_| {}).await;
    for batch in 0..120 {
        let attempts: Vec<_> = (1..=10)
            .map(|n| attempt(batch * 10 + n, batch * 10 + n, 1))
            .collect();
        stage.batch(&attempts).await;
    }
    let entries = read(&stage, "a", 512).await;
    ack(&stage, &ids(&entries), 1_200).await;
    assert_eq!(trim(&stage, entries[119].id).await, 120);
    assert_eq!(
        stage.raw::<i64>(&format!("HLEN {}", key("decided"))).await,
        0
    );
    assert_eq!(stage.buy(9_999, 9_999, 1).await, granted(9_999));
}

#[tokio::test]
async fn what_is_not_ours_is_delivered_as_unreadable_and_blocks_nobody() {
    let stage = sold(1).await;
    let stream = key("stream");
    for foreign in [
        vec!["XADD", &stream, "*", "hello", "world"],
        vec![
            "XADD",
            &stream,
            "*",
            "v",
            "1",
            "e",
            "7",
            "s",
            "1",
            "d",
            "granted 7 1 1 1 -",
        ],
        vec![
            "XADD",
            &stream,
            "*",
            "v",
            "1",
            "e",
            "1",
            "s",
            "x",
            "d",
            "granted 7 1 1 1 -",
        ],
        vec!["XADD", &stream, "*", "v", "1", "e", "1", "s", "9", "d", ""],
    ] {
        stage.command::<String>(&foreign).await;
    }
    stage.buy(2, 2, 1).await;
    let entries = read(&stage, "a", 10).await;
    let readable: Vec<bool> = entries.iter().map(|it| it.body.is_ok()).collect();
    assert_eq!(readable, [true, false, false, false, false, true]);
    let unreadable = entries[1].body.as_ref().expect_err("foreign");
    assert_eq!(unreadable.raw, "hello=world");
    ack(&stage, &ids(&entries), 2).await;
    assert_eq!(trim(&stage, entries[5].id).await, 6);
}

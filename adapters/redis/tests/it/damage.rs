//! Keys that are gone, are something else, or say something that cannot be.

use seckill_application::ports::{
    Admitted, EntryId, LeaveReply, LoadToken, NotLoaded, PartitionState, PlaceReply, StreamReply,
};
use seckill_domain::{BuyerId, Epoch, Sequence};

use crate::stage::{EPOCH, PARTITION, Stage, VOUCHER, attempt, granted, key, keyed, terms};

const KEYS: [&str; 8] = [
    "meta", "decided", "stream", "sale", "holders", "waiters", "seats", "uses",
];

/// A sale with somebody in every key.
async fn busy() -> Stage {
    let stage = Stage::selling(2, |terms| {
        terms.waitlist_capacity = 100;
        terms.per_buyer_limit = 2;
    })
    .await;
    stage
        .batch(&[
            keyed(1, 1, 1, "k"),
            attempt(2, 2, 1),
            attempt(3, 3, 1),
            attempt(4, 4, 1),
        ])
        .await;
    stage
}

fn expected(name: &str) -> NotLoaded {
    match name {
        "meta" | "decided" | "stream" => NotLoaded::Partition,
        _ => NotLoaded::Voucher,
    }
}

/// Every call that could change something says that it cannot, and does not.
async fn refuses(stage: &Stage, why: NotLoaded, what: &str) {
    let before = stage.everything().await;
    assert_eq!(
        stage.admitted(9, 9).await,
        Admitted::NotLoaded(why),
        "{what}"
    );
    let gate = &stage.hot.gate;
    let left = gate.leave(VOUCHER, BuyerId::new(3)).await.unwrap();
    assert_eq!(left, LeaveReply::NotLoaded(why), "{what}");
    assert!(!gate.promote(VOUCHER).await.unwrap(), "{what}");
    assert!(!gate.retire(VOUCHER).await.unwrap(), "{what}");
    assert_eq!(gate.facts(&[VOUCHER]).await.unwrap(), [None], "{what}");
    assert_eq!(
        gate.place(VOUCHER, BuyerId::new(3)).await.unwrap(),
        PlaceReply::NotLoaded(why),
        "{what}"
    );
    assert_eq!(stage.everything().await, before, "{what}");
}

/// What a rebuild does, after which the sale is as good as new.
async fn rebuild(stage: &Stage, what: &str) {
    let partition = stage.hot.loader.partition(PARTITION).await.unwrap();
    if partition == PartitionState::Missing {
        let epoch = Epoch::new(2);
        stage
            .hot
            .loader
            .begin_epoch(PARTITION, epoch, Sequence::new(4))
            .await
            .unwrap();
    }
    let mut cursor = Some(0);
    while let Some(at) = cursor {
        cursor = stage.hot.loader.survivors(VOUCHER, at).await.unwrap().next;
    }
    stage.open(terms(5), 5).await;
    assert_eq!(stage.buy(20, 20, 1).await, granted(20), "{what}");
}

#[tokio::test]
async fn each_key_may_go_missing_and_nothing_is_sold_out_or_sold_twice() {
    for name in KEYS {
        let stage = busy().await;
        assert_eq!(
            stage.raw::<i64>(&format!("DEL {}", key(name))).await,
            1,
            "{name} is there"
        );
        refuses(&stage, expected(name), name).await;
        rebuild(&stage, name).await;
    }
}

/// Stands for: a wrong type in the middle of a script, after it has taken the unit (F16).
#[tokio::test]
async fn each_key_may_be_of_another_type_and_nothing_changes() {
    for name in KEYS {
        let stage = busy().await;
        stage.raw::<i64>(&format!("DEL {}", key(name))).await;
        stage
            .raw::<String>(&format!("SET {} nonsense", key(name)))
            .await;
        refuses(&stage, expected(name), name).await;
        rebuild(&stage, name).await;
    }
}

#[tokio::test]
async fn a_mark_of_loading_of_another_type_keeps_nobody_out() {
    let stage = busy().await;
    stage
        .raw::<String>(&format!("SET {} nonsense", key("loading")))
        .await;
    assert!(matches!(
        stage.admitted(9, 9).await,
        Admitted::Decided { .. }
    ));
    rebuild(&stage, "loading").await;
}

#[tokio::test]
async fn staged_data_of_another_type_is_cleared_by_the_next_load() {
    for name in [
        "staged_holders",
        "staged_waiters",
        "staged_seats",
        "staged_uses",
    ] {
        let stage = busy().await;
        stage
            .raw::<String>(&format!("SET {} nonsense", key(name)))
            .await;
        rebuild(&stage, name).await;
    }
}

#[tokio::test]
async fn one_holder_less_is_noticed() {
    for (lose, name) in [("HDEL", "holders"), ("ZREM", "waiters"), ("HDEL", "uses")] {
        let stage = busy().await;
        let member = match name {
            "holders" => "2",
            "waiters" => "3",
            _ => "1 k",
        };
        let removed: i64 = stage.command(&[lose, &key(name), member]).await;
        assert_eq!(removed, 1);
        refuses(&stage, NotLoaded::Voucher, name).await;
    }
    let stage = busy().await;
    stage
        .raw::<i64>(&format!("HDEL {} 2", key("decided")))
        .await;
    refuses(&stage, NotLoaded::Partition, "decided").await;
}

#[tokio::test]
async fn a_seat_that_says_nothing_closes_the_gate() {
    let damage = [
        "nonsense",
        "a.b",
        "3.299584",
        "99\n3.x",
        "99\r\n3.11",
        "",
        "3 x",
    ];
    for text in damage {
        let stage = busy().await;
        let blocks: Vec<String> = stage.raw(&format!("HKEYS {}", key("seats"))).await;
        stage
            .command::<i64>(&["HSET", &key("seats"), &blocks[0], text])
            .await;
        for buyer in [3, 9] {
            let told = stage.admitted(9, buyer).await;
            let closed = Admitted::NotLoaded(NotLoaded::Voucher);
            assert_eq!(told, closed, "{text:?}, for all");
        }
        assert_eq!(stage.decisions().await.len(), 4);
        rebuild(&stage, "seats").await;
    }
}

#[tokio::test]
async fn numbers_that_are_none_are_not_loaded() {
    for field in ["status", "free", "limit", "version", "closes_at", "waiters"] {
        let stage = busy().await;
        stage
            .command::<i64>(&["HSET", &key("sale"), field, "many"])
            .await;
        refuses(&stage, NotLoaded::Voucher, field).await;
    }
    for field in ["free", "total", "version", "holders"] {
        let stage = busy().await;
        stage
            .command::<i64>(&["HSET", &key("sale"), field, "-3"])
            .await;
        refuses(&stage, NotLoaded::Voucher, field).await;
    }
    for field in ["epoch", "seq", "applied", "decided"] {
        let stage = busy().await;
        stage
            .command::<i64>(&["HSET", &key("meta"), field, "many"])
            .await;
        refuses(&stage, NotLoaded::Partition, field).await;
        rebuild(&stage, field).await;
    }
}

/// Stands for: FLUSHALL under load ends in an endless NOGROUP loop, or in a sale that starts anew.
#[tokio::test]
async fn after_losing_everything_nothing_is_admitted_until_it_is_loaded() {
    let stage = busy().await;
    stage.raw::<String>("FLUSHALL").await;
    refuses(&stage, NotLoaded::Partition, "everything").await;
    let read = stage
        .hot
        .stream
        .read_new(PARTITION, EPOCH, "w", 10, std::time::Duration::ZERO);
    assert_eq!(read.await.unwrap(), StreamReply::Missing);
    let read = stage
        .hot
        .stream
        .read_after(PARTITION, EPOCH, EntryId::START, 10);
    assert_eq!(read.await.unwrap(), StreamReply::Missing);
    let begun = stage
        .hot
        .loader
        .begin_load(
            VOUCHER,
            &LoadToken("a".to_owned()),
            std::time::Duration::from_secs(1),
        )
        .await
        .unwrap();
    assert_eq!(
        begun,
        seckill_application::ports::LoadBegun::PartitionMissing
    );
    rebuild(&stage, "everything").await;
}

#[tokio::test]
async fn a_stream_that_takes_no_more_entries_changes_nothing() {
    let stage = busy().await;
    let last = "18446744073709551615-18446744073709551615";
    stage
        .command::<String>(&["XADD", &key("stream"), last, "x", "y"])
        .await;
    let before = stage.everything().await;
    let attempts = [attempt(9, 9, 1)];
    let fault = stage
        .hot
        .gate
        .admit(VOUCHER, &attempts)
        .await
        .expect_err("exhausted");
    assert_eq!(
        fault.effect(),
        seckill_application::Effect::None,
        "{}",
        fault.chain()
    );
    assert_eq!(stage.everything().await, before);
    rebuild(&stage, "exhausted").await;
}

/// Stands for: maxmemory reached mid-sale (F17).
#[tokio::test]
async fn without_memory_nothing_is_half_done() {
    let stage = busy().await;
    stage.raw::<String>("CONFIG SET maxmemory 1").await;
    let before = stage.everything().await;
    let gate = &stage.hot.gate;
    let fault = gate
        .admit(VOUCHER, &[attempt(9, 9, 1)])
        .await
        .expect_err("no memory");
    assert_eq!(fault.effect(), seckill_application::Effect::None);
    assert!(fault.is_retryable());
    let held = stage.buy(1, 1, 1).await;
    assert_eq!(held, granted(1), "what needs no memory is answered");
    let left = gate
        .leave(VOUCHER, BuyerId::new(3))
        .await
        .expect_err("no memory");
    assert_eq!(left.effect(), seckill_application::Effect::None);
    let withdrawn = gate
        .withdraw(VOUCHER, 0, seckill_domain::AdjustmentId::new(1))
        .await;
    assert!(withdrawn.is_err());
    assert_eq!(stage.everything().await, before);
    stage.raw::<String>("CONFIG SET maxmemory 0").await;
    assert!(matches!(
        stage.admitted(9, 9).await,
        Admitted::Decided { .. }
    ));
}

//! Parked messages and repairs, beside transactions that are under way.

use std::time::Duration;

use seckill_application::ports::{DifferenceKind, ParkedReply};
use seckill_domain::{BuyerId, Claim, Decision, GateVersion, SaleStatus, Sequence};

use crate::fixture::{Fixture, entry, run, unreadable};

/// An order that is being inserted has no row to lock: a repair of "the ledger does not have it"
/// waits for the order writer.
#[tokio::test]
async fn a_repair_of_what_is_missing_waits_for_the_order_writer() {
    let fixture = Fixture::new(10, 1).await;
    let claim = fixture.claim(1, 1, 1);
    let mut writer = fixture.database.connect().await;
    run(&mut writer, "BEGIN").await;
    run(&mut writer, "UPDATE partitions SET applied_seq = 1").await;
    let insert = "INSERT INTO orders (id, voucher_id, user_id, quantity, amount_minor, currency, \
           status, created_at, expires_at, updated_at) \
         SELECT 1, id, 1, 1, 80, currency, 'pending_payment', UTC_TIMESTAMP(3), \
           UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM vouchers";
    run(&mut writer, insert).await;
    let books = fixture.ports.reconciliations.clone();
    let repair = {
        let claim = claim.clone();
        tokio::spawn(async move {
            books
                .repair(DifferenceKind::MessageGone, &claim, None)
                .await
        })
    };
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!repair.is_finished(), "it waits");
    run(&mut writer, "COMMIT").await;
    assert!(!repair.await.unwrap().unwrap(), "the order came");
    let updates = "SELECT COUNT(*) FROM gate_updates WHERE version > 1";
    assert_eq!(fixture.number(updates).await, 0);
}

/// What is replayed, discarded and written at once waits for its turn and does not fail.
#[tokio::test]
async fn messages_are_settled_while_the_writer_goes_on() {
    let mut fixture = Fixture::new(1_000, 2).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let impostors = (0..40).map(|n| {
        let claim = Claim {
            buyer: BuyerId::new(500 + n),
            ..fixture.claim(1, 1, 2)
        };
        Decision::Granted(claim)
    });
    let impostors = impostors.collect();
    fixture.apply(impostors).await;
    let list = fixture.ports.parked.list(true, None, 100).await.unwrap();
    assert_eq!(list.items.len(), 40);
    let settlers: Vec<_> = (0..4)
        .map(|turn| {
            let parked = fixture.ports.parked.clone();
            let ids: Vec<u64> = list.items.iter().map(|message| message.id).collect();
            tokio::spawn(async move {
                for (place, id) in ids.into_iter().enumerate() {
                    let reply = if (place + turn) % 2 == 0 {
                        parked.replay(id).await
                    } else {
                        parked.discard(id, "nobody's").await
                    };
                    let reply = reply.unwrap_or_else(|fault| panic!("{}", fault.chain()));
                    assert!(
                        !matches!(reply, ParkedReply::NotFound),
                        "{id} of {place}: {reply:?}"
                    );
                }
            })
        })
        .collect();
    for n in 2..62 {
        fixture.apply(vec![fixture.granted(n, n, 1)]).await;
    }
    for settler in settlers {
        settler.await.unwrap();
    }
    let tally = fixture
        .ports
        .ledger
        .tally(fixture.voucher, GateVersion::default());
    let tally = tally.await.unwrap().unwrap();
    assert_eq!((tally.awaiting_payment, tally.parked), (61, 0));
    assert_eq!(fixture.ledger.meters().counts().deadlocks, 0);
    fixture.assert_sound().await;
}

/// What the constraints of the schema hold, whatever is above them.
#[tokio::test]
async fn rows_that_contradict_themselves_cannot_be_written_by_hand() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let mut batch = fixture.batch(Vec::new());
    batch.up_to = entry(Sequence::new(9));
    batch.items = vec![unreadable(batch.up_to)];
    fixture.apply_batch(&batch).await;
    let mut meddler = fixture.database.connect().await;
    let refund = "INSERT INTO refunds (payment_id, order_id, amount_minor, currency, reason, \
           created_at, updated_at) VALUES ('p', 1, 1, 'CNY', 'too_late', NOW(), NOW())";
    run(&mut meddler, refund).await;
    for wrong in [
        refund,
        "UPDATE vouchers SET retired_at = NOW()",
        "UPDATE parked_messages SET state = 'discarded'",
        "UPDATE parked_messages SET discarded_because = 'no'",
        "UPDATE event_outbox SET user_id = NULL",
        "UPDATE event_outbox SET published = 2",
        "UPDATE event_outbox SET claimed_by = 'a'",
        "INSERT INTO event_batches VALUES (2, 1, 1, 1, NULL, NULL)",
        "UPDATE event_batches SET events = 1000",
        "UPDATE event_batches SET claimed_by = 'a'",
        "INSERT INTO reconciliation_findings VALUES (7, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1)",
    ] {
        let done = sqlx::raw_sql(wrong).execute(&mut meddler).await;
        assert!(done.is_err(), "{wrong}");
    }
}

/// A closed voucher that left the gate stays closed.
#[tokio::test]
async fn a_retired_voucher_cannot_be_put_on_sale_again() {
    let fixture = Fixture::new(10, 1).await;
    for status in [SaleStatus::Closed, SaleStatus::Published] {
        let mut unit = fixture.ports.ledger.begin().await.unwrap();
        let voucher = unit.lock_voucher(fixture.voucher).await.unwrap();
        let mut voucher = voucher.unwrap();
        voucher.status = status;
        let saved = unit.save_voucher(&voucher, true).await;
        assert_eq!(saved.is_ok(), status == SaleStatus::Closed);
        if saved.is_ok() {
            unit.mark_retired(fixture.voucher).await.unwrap();
            unit.commit().await.unwrap();
        }
    }
    let voucher = fixture.voucher().await;
    assert_eq!(
        (voucher.status, voucher.retired),
        (SaleStatus::Closed, true)
    );
}

//! The outbox of events. What waits to be told is marked by batches, not event by event.

mod batches;

use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{EventOutbox, LeaseOwner};
use seckill_domain::{
    BuyerId, Event, EventId, EventKind, NewEvent, OrderId, OrderStatus, VoucherId,
};
use sqlx::mysql::MySqlRow;

use crate::fault::{Trouble, at_most};
use crate::json_rows::json_parts;
use crate::page::all;
use crate::row::{get, get_time, read_status, status_word};
use crate::session::{Session, give_up, statement};
use crate::store::Store;

const CLAIMED_MAX: usize = 500;
const OF_ORDER_MAX: usize = 100;

/// The columns of an event, for [`event`].
macro_rules! event_columns {
    () => {
        "e.id, e.kind, e.voucher_id, e.order_id, e.user_id, e.created_at"
    };
}
use event_columns;

/// The word for what happened. What happened to an order is the word of the stage it is in.
fn kind_word(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Order(status) => status_word(status),
        EventKind::Promoted => "promoted",
        EventKind::RefundRecorded => "refund_recorded",
        EventKind::VoucherPublished => "voucher_published",
        EventKind::VoucherPaused => "voucher_paused",
        EventKind::VoucherResumed => "voucher_resumed",
        EventKind::VoucherClosed => "voucher_closed",
        EventKind::VoucherAmended => "voucher_amended",
        EventKind::StockAdjusted => "stock_adjusted",
    }
}

fn read_kind(word: &str) -> Result<EventKind, Trouble> {
    Ok(match word {
        "promoted" => EventKind::Promoted,
        "refund_recorded" => EventKind::RefundRecorded,
        "voucher_published" => EventKind::VoucherPublished,
        "voucher_paused" => EventKind::VoucherPaused,
        "voucher_resumed" => EventKind::VoucherResumed,
        "voucher_closed" => EventKind::VoucherClosed,
        "voucher_amended" => EventKind::VoucherAmended,
        "stock_adjusted" => EventKind::StockAdjusted,
        stage => EventKind::Order(read_status(stage)?),
    })
}

/// What happened to the order of a claim, in this stage now.
pub(crate) fn of_claim(claim: &seckill_domain::Claim, status: OrderStatus) -> NewEvent {
    NewEvent {
        kind: EventKind::Order(status),
        voucher: claim.voucher,
        order: Some((claim.order, claim.buyer)),
    }
}

/// Writes events down. An order's number rises only because its row is locked by now.
pub(crate) const APPEND: &str = "INSERT INTO event_outbox \
       (kind, voucher_id, order_id, user_id, published, created_at, written_by) \
     SELECT new.kind, new.voucher, new.subject, new.buyer, 1, UTC_TIMESTAMP(3), CONNECTION_ID() \
     FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
         kind VARCHAR(20) CHARACTER SET ascii PATH '$[0]', \
         voucher BIGINT UNSIGNED PATH '$[1]', \
         subject BIGINT UNSIGNED PATH '$[2]', \
         buyer BIGINT UNSIGNED PATH '$[3]')) new";

/// Says of what the statement before has written that it is to be told. Its numbers begin with the
/// one that the server names, and end before any that this connection may draw later.
pub(crate) const TO_BE_TOLD: &str = "INSERT INTO event_batches \
       (first_id, last_id, written_by, events) \
     SELECT LAST_INSERT_ID(), MAX(e.id), CONNECTION_ID(), ? FROM event_outbox e";

/// Writes events down, in their order.
pub(crate) async fn append(session: &mut Session, events: &[NewEvent]) -> Result<(), Trouble> {
    let rows = events.iter().map(|event| {
        let order = event.order.map(|(order, buyer)| (order.get(), buyer.get()));
        let (order, buyer) = order.unzip();
        (kind_word(event.kind), event.voucher.get(), order, buyer)
    });
    for part in json_parts(rows)? {
        session.execute(statement(APPEND).bind(part.text)).await?;
        session
            .execute(statement(TO_BE_TOLD).bind(part.count))
            .await?;
    }
    Ok(())
}

fn event(row: &MySqlRow) -> Result<Event, Trouble> {
    let order: Option<u64> = get(row, "order_id")?;
    let buyer: Option<u64> = get(row, "user_id")?;
    let order = order.zip(buyer);
    Ok(Event {
        id: EventId::new(get(row, "id")?),
        what: NewEvent {
            kind: read_kind(get(row, "kind")?)?,
            voucher: VoucherId::new(get(row, "voucher_id")?),
            order: order.map(|(order, buyer)| (OrderId::new(order), BuyerId::new(buyer))),
        },
        at: get_time(row, "created_at")?,
    })
}

/// A length of time as a parameter.
fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[async_trait]
impl EventOutbox for Store {
    async fn claim(
        &self,
        owner: &LeaseOwner,
        max: usize,
        hold: Duration,
    ) -> Result<Vec<Event>, Fault> {
        const PORT: &str = "event_outbox.claim";
        at_most(PORT, max, CLAIMED_MAX)?;
        let mut session = self.begin(PORT).await?;
        match batches::claim(&mut session, owner, max, hold).await {
            Ok(events) => {
                let committed = session.commit().await;
                committed.map_err(|trouble| trouble.at_commit(PORT))?;
                Ok(events)
            }
            Err(trouble) => Err(give_up(session, PORT, trouble).await),
        }
    }

    async fn published(&self, ids: &[EventId]) -> Result<(), Fault> {
        const PORT: &str = "event_outbox.published";
        at_most(PORT, ids.len(), CLAIMED_MAX)?;
        if ids.is_empty() {
            return Ok(());
        }
        let mut session = self.begin(PORT).await?;
        match batches::told(&mut session, ids).await {
            Ok(()) => {
                let committed = session.commit().await;
                committed.map_err(|trouble| trouble.at_commit(PORT))
            }
            Err(trouble) => Err(give_up(session, PORT, trouble).await),
        }
    }

    async fn unpublished(&self) -> Result<u64, Fault> {
        const PORT: &str = "event_outbox.unpublished";
        const SQL: &str = "SELECT CAST( \
               (SELECT COALESCE(SUM(events), 0) FROM event_batches) \
               + (SELECT COUNT(*) FROM event_outbox WHERE published = 0) AS UNSIGNED) AS waiting";
        let row = self.read_row(PORT, || statement(SQL)).await?;
        let row = row.ok_or_else(|| Fault::broken(PORT, "no count"))?;
        get(&row, "waiting").map_err(|trouble| trouble.before_commit(PORT))
    }

    async fn of_order(
        &self,
        order: OrderId,
        after: EventId,
        max: usize,
    ) -> Result<Vec<Event>, Fault> {
        const PORT: &str = "event_outbox.of_order";
        const SQL: &str = concat!(
            "SELECT ",
            event_columns!(),
            " FROM event_outbox e WHERE e.order_id = ? AND e.id > ? ORDER BY e.id LIMIT ?"
        );
        at_most(PORT, max, OF_ORDER_MAX)?;
        let read = || {
            statement(SQL)
                .bind(order.get())
                .bind(after.get())
                .bind(max as u64)
        };
        let rows = self.read(PORT, read).await?;
        all(PORT, &rows, event)
    }

    /// Looks at the oldest events alone: numbers rise with time, all but for transactions at the same
    /// moment. What waits to be told stays, however old.
    async fn prune(&self, age: Duration) -> Result<usize, Fault> {
        const PORT: &str = "event_outbox.prune";
        const SQL: &str = "DELETE e FROM \
               (SELECT o.id FROM event_outbox o FORCE INDEX (event_outbox_by_state) \
                  WHERE o.published = 1 ORDER BY o.id LIMIT 1000) oldest \
               STRAIGHT_JOIN event_outbox e ON e.id = oldest.id \
             WHERE e.published = 1 \
               AND e.created_at <= TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(3)) \
               AND NOT EXISTS (SELECT 1 FROM event_batches b \
                 WHERE e.id BETWEEN b.first_id AND b.last_id AND b.written_by = e.written_by)";
        let removed = self
            .write(PORT, || statement(SQL).bind(-micros(age)))
            .await?;
        usize::try_from(removed).map_err(|error| Fault::broken(PORT, error))
    }
}

//! The outbox of events.

use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{EventOutbox, LeaseOwner};
use seckill_domain::{
    BuyerId, Event, EventId, EventKind, NewEvent, OrderId, OrderStatus, VoucherId,
};
use sqlx::mysql::MySqlRow;

use crate::fault::{Trouble, at_most};
use crate::json_rows::{json_ids, json_parts, json_rows, wanted_ids};
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
       (kind, voucher_id, order_id, user_id, created_at) \
     SELECT new.kind, new.voucher, new.subject, new.buyer, UTC_TIMESTAMP(3) \
     FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
         kind VARCHAR(20) CHARACTER SET ascii PATH '$[0]', \
         voucher BIGINT UNSIGNED PATH '$[1]', \
         subject BIGINT UNSIGNED PATH '$[2]', \
         buyer BIGINT UNSIGNED PATH '$[3]')) new";

/// Writes events down, in their order.
pub(crate) async fn append(session: &mut Session, events: &[NewEvent]) -> Result<(), Trouble> {
    let rows = events.iter().map(|event| {
        let order = event.order.map(|(order, buyer)| (order.get(), buyer.get()));
        let (order, buyer) = order.unzip();
        (kind_word(event.kind), event.voucher.get(), order, buyer)
    });
    for part in json_parts(rows)? {
        session.execute(statement(APPEND).bind(part.text)).await?;
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

fn ids_of(events: &[EventId]) -> String {
    let mut ids: Vec<u64> = events.iter().map(|id| id.get()).collect();
    ids.sort_unstable();
    json_ids(ids.into_iter())
}

/// Numbers from the first to the last, both included.
type Range = (u64, u64);

/// What is claimed at this moment: by this relay, and by others.
struct Claims {
    own: bool,
    others: Vec<Range>,
}

impl Claims {
    async fn read(session: &mut Session, owner: &LeaseOwner) -> Result<Self, Trouble> {
        const SQL: &str = "SELECT owner, first_id, last_id FROM event_claims \
             WHERE claimed_until > UTC_TIMESTAMP(3)";
        let mut claims = Self {
            own: false,
            others: Vec::new(),
        };
        for row in &session.rows(statement(SQL)).await? {
            if get::<String>(row, "owner")? == owner.0 {
                claims.own = true;
            } else {
                let range = (get(row, "first_id")?, get(row, "last_id")?);
                claims.others.push(range);
            }
        }
        Ok(claims)
    }

    fn another_has(&self, event: EventId) -> bool {
        let id = event.get();
        let has = |(first, last): &Range| (*first..=*last).contains(&id);
        self.others.iter().any(has)
    }
}

/// Rows that another relay is about to claim or to mark are passed over, so relays never wait for
/// each other, nor for transactions that are writing.
///
/// A relay has the rows locked while it writes its claim down. Whoever gets them after that sees
/// the claim when he looks again, and leaves them.
async fn claim(
    session: &mut Session,
    owner: &LeaseOwner,
    max: usize,
    hold: Duration,
) -> Result<Vec<Event>, Trouble> {
    const CLAIM: &str = "INSERT INTO event_claims (owner, first_id, last_id, claimed_until) \
         VALUES (?, ?, ?, TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(3))) \
         ON DUPLICATE KEY UPDATE first_id = ?, last_id = ?, \
           claimed_until = TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(3))";
    const GIVE_UP: &str =
        "UPDATE event_claims SET claimed_until = UTC_TIMESTAMP(3) WHERE owner = ?";
    let before = Claims::read(session, owner).await?;
    let mut events = free(session, owner, &before.others, max).await?;
    if !events.is_empty() {
        let now = Claims::read(session, owner).await?;
        events.retain(|event| !now.another_has(event.id));
    }
    if let (Some(first), Some(last)) = (events.first(), events.last()) {
        let (first, last, hold) = (first.id.get(), last.id.get(), micros(hold));
        let claim = statement(CLAIM).bind(owner.0.as_str());
        let claim = claim.bind(first).bind(last).bind(hold);
        let claim = claim.bind(first).bind(last).bind(hold);
        session.execute(claim).await?;
    } else if before.own {
        // Late events in the range are anybody's again.
        session
            .execute(statement(GIVE_UP).bind(owner.0.as_str()))
            .await?;
    }
    Ok(events)
}

/// The oldest unpublished events outside these ranges, locked.
async fn free(
    session: &mut Session,
    owner: &LeaseOwner,
    claimed: &[Range],
    max: usize,
) -> Result<Vec<Event>, Trouble> {
    macro_rules! free {
        ($beside:literal) => {
            concat!(
                "SELECT ",
                event_columns!(),
                " FROM event_outbox e FORCE INDEX (event_outbox_by_state) \
                 WHERE e.published = 0 AND (e.claimed_until IS NULL \
                   OR e.claimed_until <= UTC_TIMESTAMP(3) OR e.claimed_by = ?) ",
                $beside,
                "ORDER BY e.id LIMIT ? FOR UPDATE SKIP LOCKED"
            )
        };
    }
    const FREE: &str = free!("");
    const BESIDE: &str = free!(
        "AND NOT EXISTS (SELECT 1 FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
             first_id BIGINT UNSIGNED PATH '$[0]', \
             last_id BIGINT UNSIGNED PATH '$[1]')) claimed \
           WHERE e.id BETWEEN claimed.first_id AND claimed.last_id) "
    );
    let read = if claimed.is_empty() {
        statement(FREE).bind(owner.0.as_str())
    } else {
        let ranges = json_rows(claimed.iter())?;
        statement(BESIDE).bind(owner.0.as_str()).bind(ranges)
    };
    let rows = session.rows(read.bind(max as u64)).await?;
    rows.iter().map(event).collect()
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
        match claim(&mut session, owner, max, hold).await {
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
        const SQL: &str = concat!(
            "UPDATE ",
            wanted_ids!(),
            "STRAIGHT_JOIN event_outbox e ON e.id = wanted.id \
             SET e.published = 1 \
             WHERE e.published = 0"
        );
        at_most(PORT, ids.len(), CLAIMED_MAX)?;
        if ids.is_empty() {
            return Ok(());
        }
        let ids = ids_of(ids);
        self.write(PORT, || statement(SQL).bind(&ids)).await?;
        Ok(())
    }

    async fn unpublished(&self) -> Result<u64, Fault> {
        const PORT: &str = "event_outbox.unpublished";
        const SQL: &str = "SELECT CAST(COUNT(*) AS UNSIGNED) AS waiting FROM event_outbox \
             WHERE published = 0";
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

    /// Looks at the oldest published events alone: numbers rise with time, all but for
    /// transactions at the same moment. Relays that claimed nothing since are forgotten, too.
    async fn prune(&self, age: Duration) -> Result<usize, Fault> {
        const PORT: &str = "event_outbox.prune";
        const SQL: &str = "DELETE e FROM \
               (SELECT o.id FROM event_outbox o FORCE INDEX (event_outbox_by_state) \
                  WHERE o.published = 1 ORDER BY o.id LIMIT 1000) oldest \
               STRAIGHT_JOIN event_outbox e ON e.id = oldest.id \
             WHERE e.published = 1 \
               AND e.created_at <= TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(3))";
        const RELAYS: &str = "DELETE FROM event_claims \
             WHERE claimed_until <= TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(3))";
        self.write(PORT, || statement(RELAYS).bind(-micros(age)))
            .await?;
        let removed = self
            .write(PORT, || statement(SQL).bind(-micros(age)))
            .await?;
        usize::try_from(removed).map_err(|error| Fault::broken(PORT, error))
    }
}

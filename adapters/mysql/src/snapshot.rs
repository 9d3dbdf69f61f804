//! Consistent reads of a whole sale: everything at one moment, with the position of the stream at
//! that moment.

use seckill_application::Fault;
use seckill_application::ports::{
    Holder, KeyUse, LOAD_CHUNK_MAX, LedgerTally, LoadChunk, OpenSale, PartitionHead, SaleSnapshot,
};
use seckill_domain::{
    BuyerId, GateVersion, Held, OrderId, OrderStatus, PlaceAtFirst, Remembered, Seat, Timestamp,
    Voucher, VoucherId,
};
use sqlx::mysql::MySqlRow;

use crate::fault::Trouble;
use crate::row::{self, get, get_time};
use crate::session::{Session, statement};
use crate::store::Store;

mod parked;

/// The partition of a voucher is its number modulo the deployment's count.
const VOUCHER: &str = concat!(row::select_voucher!(), "WHERE v.id = ?");
const HEAD: &str = "SELECT d.partitions, p.fence, p.epoch, p.applied_seq, p.applied_ms, p.applied_no \
     FROM deployment d LEFT JOIN partitions p ON p.partition_id = ? MOD d.partitions";
const LIVE: &str = "SELECT id, user_id, quantity, ticket, status, expires_at FROM orders \
     WHERE voucher_id = ? AND status IN ('pending_payment', 'paid') ORDER BY id";
const WAITING: &str = "SELECT id, user_id, quantity, ticket, idempotency_key FROM orders \
     WHERE voucher_id = ? AND status = 'waiting' ORDER BY ticket";
const KEYS: &str = "SELECT id, user_id, quantity, ticket, idempotency_key FROM orders \
     WHERE voucher_id = ? AND idempotency_key IS NOT NULL";
/// What is parked, oldest first, and whose the order it is about is in the ledger.
const PARKED: &str = "SELECT p.payload, p.units, p.unheld_units, o.user_id \
     FROM parked_messages p LEFT JOIN orders o ON o.id = p.order_id WHERE p.voucher_id = ? AND p.state = 'parked' ORDER BY p.id";

/// Everything the gate needs about a sale.
pub(crate) async fn sale(store: &Store, voucher: VoucherId) -> Result<Option<SaleSnapshot>, Fault> {
    const PORT: &str = "ledger.sale_snapshot";
    let mut session = store.begin_snapshot(PORT).await?;
    let read = read_sale(&mut session, voucher).await;
    read.map_err(|trouble| trouble.before_commit(PORT))
}

async fn read_sale(session: &mut Session, id: VoucherId) -> Result<Option<SaleSnapshot>, Trouble> {
    let Some((voucher, head)) = voucher_at_head(session, id).await? else {
        return Ok(None);
    };
    let of = |sql| statement(sql).bind(id.get());
    let live = session.rows(of(LIVE)).await?;
    let holders = each(&live, holder)?;
    let due = each(&live, due)?.into_iter().flatten().collect();
    let seats = each(&session.rows(of(WAITING)).await?, seat)?;
    let keys = each(&session.rows(of(KEYS)).await?, key_use)?;
    let parked = session.rows(of(PARKED)).await?;
    session.rollback().await?;
    let unheld = parked
        .iter()
        .map(|row| get::<u32>(row, "unheld_units"))
        .sum::<Result<u32, Trouble>>()?;
    let all = LoadChunk {
        holders,
        seats,
        keys,
    };
    let all = parked::with(all, &parked)?;
    Ok(Some(SaleSnapshot {
        sale: OpenSale {
            terms: voucher.sale_terms(),
            free: voucher.stock_units.saturating_sub(unheld),
            version: voucher.version,
            applied: head.applied,
        },
        chunks: chunks(all),
        due,
    }))
}

/// A voucher, and how far its partition's stream is applied.
async fn voucher_at_head(
    session: &mut Session,
    id: VoucherId,
) -> Result<Option<(Voucher, PartitionHead)>, Trouble> {
    let Some(found) = session.row(statement(VOUCHER).bind(id.get())).await? else {
        return Ok(None);
    };
    let voucher = row::voucher(&found)?;
    let head = session.row(statement(HEAD).bind(id.get())).await?;
    let head = head.ok_or_else(|| Trouble::broken("the number of partitions is not settled"))?;
    let head = match get::<Option<u64>>(&head, "epoch")? {
        Some(_) => row::head(&head)?,
        None => crate::admissions::UNTOUCHED,
    };
    Ok(Some((voucher, head)))
}

fn each<T>(
    rows: &[MySqlRow],
    read: impl Fn(&MySqlRow) -> Result<T, Trouble>,
) -> Result<Vec<T>, Trouble> {
    rows.iter().map(read).collect()
}

fn holder(row: &MySqlRow) -> Result<Holder, Trouble> {
    Ok(Holder {
        buyer: BuyerId::new(get(row, "user_id")?),
        held: Held {
            order: OrderId::new(get(row, "id")?),
            quantity: get(row, "quantity")?,
            promoted: row::ticket(row)?.is_some(),
        },
    })
}

/// When the payment window of a live order ends, if it is unpaid.
fn due(row: &MySqlRow) -> Result<Option<(OrderId, Timestamp)>, Trouble> {
    if row::read_status(get(row, "status")?)? != OrderStatus::PendingPayment {
        return Ok(None);
    }
    let order = OrderId::new(get(row, "id")?);
    Ok(Some((order, get_time(row, "expires_at")?)))
}

fn key_text(row: &MySqlRow) -> Result<Option<seckill_domain::IdempotencyKey>, Trouble> {
    let key: Option<&str> = get(row, "idempotency_key")?;
    key.map(str::parse)
        .transpose()
        .map_err(|error| Trouble::Broken(Box::new(error)))
}

fn seat(row: &MySqlRow) -> Result<Seat, Trouble> {
    let ticket =
        row::ticket(row)?.ok_or_else(|| Trouble::broken("an order waits without a ticket"))?;
    Ok(Seat {
        ticket,
        order: OrderId::new(get(row, "id")?),
        buyer: BuyerId::new(get(row, "user_id")?),
        quantity: get(row, "quantity")?,
        key: key_text(row)?,
    })
}

fn key_use(row: &MySqlRow) -> Result<KeyUse, Trouble> {
    let key = key_text(row)?.ok_or_else(|| Trouble::broken("a key that is none"))?;
    let first = if row::ticket(row)?.is_some() {
        PlaceAtFirst::Waitlisted
    } else {
        PlaceAtFirst::Granted
    };
    Ok(KeyUse {
        buyer: BuyerId::new(get(row, "user_id")?),
        key,
        first: Remembered {
            order: OrderId::new(get(row, "id")?),
            quantity: get(row, "quantity")?,
            first,
        },
    })
}

/// At least one chunk, so that the first one clears what an earlier attempt loaded.
fn chunks(all: LoadChunk) -> Vec<LoadChunk> {
    let longest = all.holders.len().max(all.seats.len()).max(all.keys.len());
    let count = longest.div_ceil(LOAD_CHUNK_MAX).max(1);
    let (mut holders, mut seats, mut keys) = (
        all.holders.into_iter(),
        all.seats.into_iter(),
        all.keys.into_iter(),
    );
    (0..count)
        .map(|_| LoadChunk {
            holders: holders.by_ref().take(LOAD_CHUNK_MAX).collect(),
            seats: seats.by_ref().take(LOAD_CHUNK_MAX).collect(),
            keys: keys.by_ref().take(LOAD_CHUNK_MAX).collect(),
        })
        .collect()
}

/// The ledger's side of a balance.
pub(crate) async fn tally(
    store: &Store,
    voucher: VoucherId,
    gate_version: GateVersion,
) -> Result<Option<LedgerTally>, Fault> {
    const PORT: &str = "ledger.tally";
    let mut session = store.begin_snapshot(PORT).await?;
    let read = read_tally(&mut session, voucher, gate_version).await;
    read.map_err(|trouble| trouble.before_commit(PORT))
}

async fn read_tally(
    session: &mut Session,
    id: VoucherId,
    gate_version: GateVersion,
) -> Result<Option<LedgerTally>, Trouble> {
    const SUMS: &str = "SELECT \
           (SELECT CAST(COALESCE(SUM(quantity), 0) AS UNSIGNED) FROM orders \
              WHERE voucher_id = ? AND status = 'pending_payment') AS awaiting_payment, \
           (SELECT CAST(COALESCE(SUM(quantity), 0) AS UNSIGNED) FROM orders \
              WHERE voucher_id = ? AND status = 'paid') AS paid, \
           (SELECT CAST(COALESCE(SUM(units), 0) AS UNSIGNED) FROM parked_messages \
              WHERE voucher_id = ? AND state = 'parked') AS parked, \
           (SELECT CAST(COALESCE(SUM(unheld_units), 0) AS UNSIGNED) FROM parked_messages \
              WHERE voucher_id = ? AND state = 'parked') AS unheld, \
           (SELECT CAST(COALESCE(SUM(units_returned), 0) AS UNSIGNED) FROM gate_updates \
              WHERE voucher_id = ? AND version > ?) AS returned";
    let Some((voucher, head)) = voucher_at_head(session, id).await? else {
        return Ok(None);
    };
    let sums = statement(SUMS)
        .bind(id.get())
        .bind(id.get())
        .bind(id.get())
        .bind(id.get())
        .bind(id.get())
        .bind(gate_version.get());
    let sums = session.row(sums).await?;
    session.rollback().await?;
    let sums = sums.ok_or_else(|| Trouble::broken("no sums"))?;
    let units = |column| {
        let units: u64 = get(&sums, column)?;
        u32::try_from(units).map_err(|_| Trouble::broken(format!("{column} is out of range")))
    };
    let unheld = units("unheld")?;
    Ok(Some(LedgerTally {
        total: voucher.total_units,
        stock: voucher.stock_units.saturating_sub(unheld),
        parked: units("parked")?.saturating_add(unheld),
        awaiting_payment: units("awaiting_payment")?,
        paid: units("paid")?,
        version: voucher.version,
        units_returned_after: get(&sums, "returned")?,
        head,
    }))
}

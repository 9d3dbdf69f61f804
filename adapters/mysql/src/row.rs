//! Rows and the domain's values: the words of the columns, and reading rows back.

use std::time::Duration;

use seckill_application::ports::{AdjustmentState, EntryId, PartitionHead};
use seckill_domain::{
    BuyerId, Currency, Epoch, Fence, GateVersion, Money, Order, OrderId, OrderStatus, RejectReason,
    SaleStatus, SaleWindow, Sequence, Stage, Ticket, Timestamp, Voucher, VoucherId, VoucherTerms,
};
use sqlx::mysql::MySqlRow;
use sqlx::{Decode, MySql, Row, Type};
use time::{OffsetDateTime, PrimitiveDateTime};

use crate::fault::Trouble;

/// The columns of an order, for [`order`].
macro_rules! order_columns {
    () => {
        "o.id, o.voucher_id, o.user_id, o.quantity, o.amount_minor, o.currency, o.status, o.reason, \
         o.ticket, o.idempotency_key, o.payment_id, o.created_at, o.expires_at"
    };
}
pub(crate) use order_columns;

/// The columns of a voucher and the tables they are in, for [`voucher`].
macro_rules! select_voucher {
    () => {
        "SELECT v.id, v.title, v.description, v.face_value_minor, v.price_minor, v.currency, \
         v.per_buyer_limit, v.opens_at, v.closes_at, v.payment_window_s, v.waitlist_capacity, \
         v.status, v.created_at, v.retired_at IS NOT NULL AS retired, s.total_units, s.stock_units, s.gate_version \
         FROM vouchers v JOIN voucher_stock s ON s.voucher_id = v.id "
    };
}
pub(crate) use select_voucher;

/// Reads a column.
pub(crate) fn get<'r, T>(row: &'r MySqlRow, column: &str) -> Result<T, Trouble>
where
    T: Decode<'r, MySql> + Type<MySql>,
{
    row.try_get(column).map_err(Trouble::of)
}

/// Reads a signed count, which the schema keeps from being negative.
pub(crate) fn get_count(row: &MySqlRow, column: &str) -> Result<u32, Trouble> {
    let count: i32 = get(row, column)?;
    u32::try_from(count).map_err(|_| Trouble::broken(format!("{column} is negative")))
}

/// Reads a text that stands for a value.
pub(crate) fn get_text<T>(row: &MySqlRow, column: &str) -> Result<Option<T>, Trouble>
where
    T: std::str::FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let text: Option<&str> = get(row, column)?;
    text.map(str::parse)
        .transpose()
        .map_err(|error| Trouble::Broken(Box::new(error)))
}

/// A column that has to be there.
pub(crate) fn need<T>(value: Option<T>, column: &str) -> Result<T, Trouble> {
    value.ok_or_else(|| Trouble::broken(format!("{column} is missing")))
}

/// A time as a parameter; times outside the years 1 to 9999 have none. Without an offset, because
/// with one it would travel as a `TIMESTAMP`, which ends in 2038.
pub(crate) fn moment(at: Timestamp) -> Option<PrimitiveDateTime> {
    let nanos = i128::from(at.as_millis()) * 1_000_000;
    let at = OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()?;
    let in_range = (1..=9999).contains(&at.year());
    in_range.then(|| PrimitiveDateTime::new(at.date(), at.time()))
}

fn timestamp(at: PrimitiveDateTime) -> Timestamp {
    let millis = at.assume_utc().unix_timestamp_nanos().div_euclid(1_000_000);
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

/// Reads a time.
pub(crate) fn get_time(row: &MySqlRow, column: &str) -> Result<Timestamp, Trouble> {
    get(row, column).map(timestamp)
}

macro_rules! words {
    ($(#[$doc:meta])* $write:ident, $read:ident, $type:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        pub(crate) fn $write(value: $type) -> &'static str {
            match value {
                $($type::$variant => $word),+
            }
        }

        /// The value of a word.
        pub(crate) fn $read(word: &str) -> Result<$type, Trouble> {
            match word {
                $($word => Ok($type::$variant),)+
                other => Err(Trouble::broken(format!("{other:?} is no {}", stringify!($type)))),
            }
        }
    };
}
pub(crate) use words;

words!(
    /// The word for an order's stage. An order in the ledger is never queued.
    status_word, read_status, OrderStatus {
        Waiting = "waiting",
        Queued = "queued",
        PendingPayment = "pending_payment",
        Paid = "paid",
        Cancelled = "cancelled",
        Expired = "expired",
        Refunded = "refunded",
        Rejected = "rejected",
        Withdrawn = "withdrawn",
        ClosedOut = "closed_out",
    }
);

words!(
    /// The word for the reason of a rejection.
    reason_word, read_reason, RejectReason {
        NoStock = "no_stock",
        LimitReached = "limit_reached",
        Lost = "lost",
        NotEnoughUnits = "not_enough_units",
        Discarded = "discarded",
    }
);

words!(
    /// The word for a sale's status.
    sale_word, read_sale, SaleStatus {
        Draft = "draft",
        Published = "published",
        Paused = "paused",
        Closed = "closed",
    }
);

words!(
    /// The word for an adjustment's state.
    adjustment_word, read_adjustment, AdjustmentState {
        Pending = "pending",
        Applied = "applied",
        Refused = "refused",
    }
);

/// An order, from [`order_columns`].
pub(crate) fn order(row: &MySqlRow) -> Result<Order, Trouble> {
    let amount = Money {
        minor: get(row, "amount_minor")?,
        currency: currency(row)?,
    };
    let expires_at: Option<PrimitiveDateTime> = get(row, "expires_at")?;
    Ok(Order {
        id: OrderId::new(get(row, "id")?),
        voucher: VoucherId::new(get(row, "voucher_id")?),
        buyer: BuyerId::new(get(row, "user_id")?),
        quantity: get(row, "quantity")?,
        amount,
        key: get_text(row, "idempotency_key")?,
        created_at: get_time(row, "created_at")?,
        ticket: ticket(row)?,
        expires_at: expires_at.map(timestamp),
        stage: stage(row)?,
    })
}

/// An order's turn on the waitlist; 0 stands for none.
pub(crate) fn ticket(row: &MySqlRow) -> Result<Option<Ticket>, Trouble> {
    let ticket: u64 = get(row, "ticket")?;
    Ok((ticket > 0).then(|| Ticket::new(ticket)))
}

fn stage(row: &MySqlRow) -> Result<Stage, Trouble> {
    let payment = || need(get_text(row, "payment_id")?, "payment_id");
    Ok(match read_status(get(row, "status")?)? {
        OrderStatus::Waiting => Stage::Waiting,
        OrderStatus::Queued => Stage::Queued,
        OrderStatus::PendingPayment => Stage::PendingPayment,
        OrderStatus::Paid => Stage::Paid {
            payment: payment()?,
        },
        OrderStatus::Cancelled => Stage::Cancelled,
        OrderStatus::Expired => Stage::Expired,
        OrderStatus::Refunded => Stage::Refunded {
            payment: payment()?,
        },
        OrderStatus::Rejected => Stage::Rejected {
            reason: read_reason(need(get(row, "reason")?, "reason")?)?,
        },
        OrderStatus::Withdrawn => Stage::Withdrawn,
        OrderStatus::ClosedOut => Stage::ClosedOut,
    })
}

/// Reads a currency.
pub(crate) fn currency(row: &MySqlRow) -> Result<Currency, Trouble> {
    need(get_text(row, "currency")?, "currency")
}

/// A voucher, from [`select_voucher`].
pub(crate) fn voucher(row: &MySqlRow) -> Result<Voucher, Trouble> {
    let currency = currency(row)?;
    let window_s: u32 = get(row, "payment_window_s")?;
    let money = |column| get(row, column).map(|minor| Money { minor, currency });
    let terms = VoucherTerms {
        title: get(row, "title")?,
        description: get(row, "description")?,
        face_value: money("face_value_minor")?,
        price: money("price_minor")?,
        per_buyer_limit: get_count(row, "per_buyer_limit")?,
        window: SaleWindow {
            opens_at: get_time(row, "opens_at")?,
            closes_at: get_time(row, "closes_at")?,
        },
        payment_window: Duration::from_secs(u64::from(window_s)),
        waitlist_capacity: get(row, "waitlist_capacity")?,
    };
    Ok(Voucher {
        id: VoucherId::new(get(row, "id")?),
        terms,
        total_units: get_count(row, "total_units")?,
        stock_units: get_count(row, "stock_units")?,
        status: read_sale(get(row, "status")?)?,
        version: GateVersion::new(get(row, "gate_version")?),
        created_at: get_time(row, "created_at")?,
        retired: get::<i64>(row, "retired")? != 0,
    })
}

/// A partition's position, from the columns of `partitions`.
pub(crate) fn head(row: &MySqlRow) -> Result<PartitionHead, Trouble> {
    Ok(PartitionHead {
        epoch: Epoch::new(get(row, "epoch")?),
        fence: Fence::new(get(row, "fence")?),
        applied: Sequence::new(get(row, "applied_seq")?),
        entry: EntryId {
            millis: get(row, "applied_ms")?,
            counter: get(row, "applied_no")?,
        },
    })
}

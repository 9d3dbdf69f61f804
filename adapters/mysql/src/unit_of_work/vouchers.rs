//! Vouchers within a transaction.

use seckill_application::ports::NewVoucher;
use seckill_domain::{GateChange, GateVersion, Timestamp, Voucher, VoucherId, VoucherTerms};
use time::PrimitiveDateTime;

use super::releases::{new_version, write_update};
use crate::fault::Trouble;
use crate::row::{self, moment, sale_word, select_voucher};
use crate::session::{Session, Statement, statement};

fn at(when: Timestamp) -> Result<PrimitiveDateTime, Trouble> {
    moment(when).ok_or_else(|| Trouble::broken("a time outside the years 1 to 9999"))
}

/// Binds the settings, in the order of the columns from `title` to `waitlist_capacity`.
fn bind_terms<'q>(
    statement: Statement<'q>,
    terms: &'q VoucherTerms,
) -> Result<Statement<'q>, Trouble> {
    Ok(statement
        .bind(terms.title.as_str())
        .bind(terms.description.as_deref())
        .bind(terms.face_value.minor)
        .bind(terms.price.minor)
        .bind(terms.per_buyer_limit)
        .bind(at(terms.window.opens_at)?)
        .bind(at(terms.window.closes_at)?)
        .bind(terms.payment_window.as_secs())
        .bind(terms.waitlist_capacity))
}

pub(super) async fn insert(session: &mut Session, new: &NewVoucher) -> Result<Voucher, Trouble> {
    const VOUCHER: &str = "INSERT INTO vouchers \
           (title, description, face_value_minor, price_minor, per_buyer_limit, opens_at, \
            closes_at, payment_window_s, waitlist_capacity, currency, status, created_at, \
            updated_at) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'draft', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))";
    const STOCK: &str = "INSERT INTO voucher_stock \
           (voucher_id, total_units, stock_units, gate_version) VALUES (?, ?, ?, 0)";
    let voucher =
        bind_terms(statement(VOUCHER), &new.terms)?.bind(new.terms.price.currency.as_str());
    let id = VoucherId::new(session.execute(voucher).await?.last_insert_id());
    let stock = statement(STOCK)
        .bind(id.get())
        .bind(new.total_units)
        .bind(new.total_units);
    session.execute(stock).await?;
    let stored = lock(session, id).await?;
    stored.ok_or_else(|| Trouble::broken("a voucher is gone in the transaction that made it"))
}

/// Locks the settings and then the counters, in this order, as everybody does.
pub(super) async fn lock(session: &mut Session, id: VoucherId) -> Result<Option<Voucher>, Trouble> {
    const SQL: &str = concat!(select_voucher!(), "WHERE v.id = ? FOR UPDATE");
    let row = session.row(statement(SQL).bind(id.get())).await?;
    row.as_ref().map(row::voucher).transpose()
}

/// The counters are written only while the stored voucher is a draft: after that, units move by
/// orders and adjustments alone.
pub(super) async fn save(
    session: &mut Session,
    voucher: &Voucher,
    follow: bool,
) -> Result<GateVersion, Trouble> {
    const COUNTERS: &str = "UPDATE voucher_stock s JOIN vouchers v ON v.id = s.voucher_id \
         SET s.total_units = IF(v.status = 'draft', ?, s.total_units), \
             s.stock_units = IF(v.status = 'draft', ?, s.stock_units), \
             s.gate_version = LAST_INSERT_ID(s.gate_version + ?) \
         WHERE s.voucher_id = ?";
    const SETTINGS: &str = "UPDATE vouchers SET title = ?, description = ?, \
           face_value_minor = ?, price_minor = ?, per_buyer_limit = ?, opens_at = ?, \
           closes_at = ?, payment_window_s = ?, waitlist_capacity = ?, status = ?, \
           updated_at = UTC_TIMESTAMP(3) \
         WHERE id = ?";
    let counters = statement(COUNTERS)
        .bind(voucher.total_units)
        .bind(voucher.stock_units)
        .bind(u64::from(follow))
        .bind(voucher.id.get());
    let version = new_version(&session.execute(counters).await?)?;
    let settings = bind_terms(statement(SETTINGS), &voucher.terms)?
        .bind(sale_word(voucher.status))
        .bind(voucher.id.get());
    session.execute(settings).await?;
    if follow {
        let change = GateChange::SetTerms(voucher.sale_terms());
        write_update(session, voucher.id, version, vec![change]).await?;
    }
    Ok(version)
}

pub(super) async fn mark_retired(session: &mut Session, id: VoucherId) -> Result<(), Trouble> {
    const SQL: &str = "UPDATE vouchers \
         SET retired_at = COALESCE(retired_at, UTC_TIMESTAMP(3)), updated_at = UTC_TIMESTAMP(3) \
         WHERE id = ? AND status = 'closed'";
    let mark = statement(SQL).bind(id.get());
    if session.execute(mark).await?.rows_affected() == 1 {
        Ok(())
    } else {
        Err(Trouble::broken("there is no such voucher that is closed"))
    }
}

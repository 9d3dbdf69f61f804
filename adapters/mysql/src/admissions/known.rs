//! What the ledger knows about the items of a slice, read and locked in one go.

use std::collections::{BTreeSet, HashMap};

use seckill_application::ports::{AdjustmentState, BatchItem};
use seckill_domain::{
    AdjustmentId, BuyerId, Claim, Decision, IdempotencyKey, OrderId, OrderStatus, RejectReason,
    SaleStatus, VoucherId,
};
use sqlx::mysql::MySqlRow;

use crate::fault::Trouble;
use crate::json_rows::{json_ids, json_rows, wanted_ids};
use crate::row::{self, get, get_count};
use crate::session::{Session, statement};

/// A voucher.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownSale {
    /// Never published: the gate cannot know it.
    pub(super) is_draft: bool,
    pub(super) per_buyer_limit: u64,
    pub(super) stock: u64,
}

/// An order that the ledger has.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownOrder {
    pub(super) voucher: VoucherId,
    pub(super) buyer: BuyerId,
    pub(super) quantity: u32,
    pub(super) status: OrderStatus,
    pub(super) reason: Option<RejectReason>,
}

/// An adjustment that the ledger has.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownAdjustment {
    pub(super) voucher: VoucherId,
    pub(super) delta: i32,
    pub(super) state: AdjustmentState,
}

/// Everything that decides about a slice's items.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) sales: HashMap<VoucherId, KnownSale>,
    pub(super) orders: HashMap<OrderId, KnownOrder>,
    pub(super) keys: HashMap<(VoucherId, BuyerId, IdempotencyKey), OrderId>,
    /// The orders by which buyers wait.
    pub(super) waiting: HashMap<(VoucherId, BuyerId), OrderId>,
    /// Live units.
    pub(super) holdings: HashMap<(VoucherId, BuyerId), u64>,
    pub(super) adjustments: HashMap<AdjustmentId, KnownAdjustment>,
}

fn decisions(items: &[BatchItem]) -> impl Iterator<Item = &Decision> {
    items.iter().filter_map(BatchItem::decision)
}

fn claims(items: &[BatchItem]) -> impl Iterator<Item = &Claim> {
    decisions(items).filter_map(Decision::claim)
}

/// Reads and locks in the order that everybody keeps: orders, holdings, vouchers, adjustments. Nobody
/// else's new orders of these vouchers can be committed meanwhile: the partition's position is locked.
pub(super) async fn load(session: &mut Session, items: &[BatchItem]) -> Result<Known, Trouble> {
    Ok(Known {
        orders: orders(session, items).await?,
        keys: keys(session, items).await?,
        waiting: waiting(session, items).await?,
        holdings: holdings(session, items).await?,
        sales: sales(session, items).await?,
        adjustments: adjustments(session, items).await?,
    })
}

async fn orders(
    session: &mut Session,
    items: &[BatchItem],
) -> Result<HashMap<OrderId, KnownOrder>, Trouble> {
    const SQL: &str = concat!(
        "SELECT o.id, o.voucher_id, o.user_id, o.quantity, o.status, o.reason FROM ",
        wanted_ids!(),
        "STRAIGHT_JOIN orders o ON o.id = wanted.id FOR UPDATE"
    );
    let ids: BTreeSet<u64> = claims(items).map(|claim| claim.order.get()).collect();
    let rows = session
        .rows(statement(SQL).bind(json_ids(ids.into_iter())))
        .await?;
    rows.iter()
        .map(|row| Ok((OrderId::new(get(row, "id")?), order(row)?)))
        .collect()
}

fn order(row: &MySqlRow) -> Result<KnownOrder, Trouble> {
    let reason: Option<&str> = get(row, "reason")?;
    Ok(KnownOrder {
        voucher: VoucherId::new(get(row, "voucher_id")?),
        buyer: BuyerId::new(get(row, "user_id")?),
        quantity: get(row, "quantity")?,
        status: row::read_status(get(row, "status")?)?,
        reason: reason.map(row::read_reason).transpose()?,
    })
}

async fn keys(
    session: &mut Session,
    items: &[BatchItem],
) -> Result<HashMap<(VoucherId, BuyerId, IdempotencyKey), OrderId>, Trouble> {
    const SQL: &str = "SELECT o.id, o.voucher_id, o.user_id, o.idempotency_key \
         FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
             voucher BIGINT UNSIGNED PATH '$[0]', \
             buyer BIGINT UNSIGNED PATH '$[1]', \
             idempotency_key VARCHAR(64) CHARACTER SET ascii PATH '$[2]')) wanted \
           STRAIGHT_JOIN orders o ON o.user_id = wanted.buyer AND o.voucher_id = wanted.voucher \
             AND o.idempotency_key = wanted.idempotency_key COLLATE ascii_bin";
    let keys = claims(items).filter_map(|claim| {
        let key = claim.key.as_ref()?;
        Some((claim.voucher.get(), claim.buyer.get(), key.as_str()))
    });
    let rows = session.rows(statement(SQL).bind(json_rows(keys)?)).await?;
    rows.iter().map(key).collect()
}

fn key(row: &MySqlRow) -> Result<((VoucherId, BuyerId, IdempotencyKey), OrderId), Trouble> {
    let voucher = VoucherId::new(get(row, "voucher_id")?);
    let buyer = BuyerId::new(get(row, "user_id")?);
    let key: &str = get(row, "idempotency_key")?;
    let key = key
        .parse()
        .map_err(|error| Trouble::Broken(Box::new(error)))?;
    Ok(((voucher, buyer, key), OrderId::new(get(row, "id")?)))
}

/// The places of buyers who join. No locks: whoever else changes these orders only ends them.
pub(super) async fn waiting(
    session: &mut Session,
    items: &[BatchItem],
) -> Result<HashMap<(VoucherId, BuyerId), OrderId>, Trouble> {
    const SQL: &str = "SELECT o.id, o.voucher_id, o.user_id FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
             voucher BIGINT UNSIGNED PATH '$[0]', \
             buyer BIGINT UNSIGNED PATH '$[1]')) wanted \
           STRAIGHT_JOIN orders o ON o.user_id = wanted.buyer AND o.voucher_id = wanted.voucher \
             AND o.status = 'waiting'";
    let joining: BTreeSet<(u64, u64)> = decisions(items)
        .filter_map(|decision| match decision {
            Decision::Joined { claim, .. } => Some((claim.voucher.get(), claim.buyer.get())),
            _ => None,
        })
        .collect();
    if joining.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = session
        .rows(statement(SQL).bind(json_rows(joining.into_iter())?))
        .await?;
    rows.iter()
        .map(|row| {
            let voucher = VoucherId::new(get(row, "voucher_id")?);
            let buyer = BuyerId::new(get(row, "user_id")?);
            Ok(((voucher, buyer), OrderId::new(get(row, "id")?)))
        })
        .collect()
}

async fn holdings(
    session: &mut Session,
    items: &[BatchItem],
) -> Result<HashMap<(VoucherId, BuyerId), u64>, Trouble> {
    const SQL: &str = "SELECT h.voucher_id, h.user_id, h.units \
         FROM (SELECT listed.voucher, listed.buyer FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
             voucher BIGINT UNSIGNED PATH '$[0]', \
             buyer BIGINT UNSIGNED PATH '$[1]')) listed) wanted \
           STRAIGHT_JOIN holdings h ON h.voucher_id = wanted.voucher \
             AND h.user_id = wanted.buyer \
         FOR UPDATE";
    let holders: BTreeSet<(u64, u64)> = claims(items)
        .map(|claim| (claim.voucher.get(), claim.buyer.get()))
        .collect();
    let rows = session
        .rows(statement(SQL).bind(json_rows(holders.into_iter())?))
        .await?;
    rows.iter()
        .map(|row| {
            let voucher = VoucherId::new(get(row, "voucher_id")?);
            let buyer = BuyerId::new(get(row, "user_id")?);
            Ok(((voucher, buyer), get_count(row, "units")?.into()))
        })
        .collect()
}

async fn sales(
    session: &mut Session,
    items: &[BatchItem],
) -> Result<HashMap<VoucherId, KnownSale>, Trouble> {
    const SQL: &str = concat!(
        "SELECT v.id, v.status, v.per_buyer_limit, s.stock_units FROM ",
        wanted_ids!(),
        "STRAIGHT_JOIN vouchers v ON v.id = wanted.id \
         STRAIGHT_JOIN voucher_stock s ON s.voucher_id = v.id FOR UPDATE"
    );
    let vouchers: BTreeSet<u64> = decisions(items)
        .map(|decision| decision.voucher().get())
        .collect();
    let rows = session
        .rows(statement(SQL).bind(json_ids(vouchers.into_iter())))
        .await?;
    rows.iter()
        .map(|row| {
            let sale = KnownSale {
                is_draft: row::read_sale(get(row, "status")?)? == SaleStatus::Draft,
                per_buyer_limit: get_count(row, "per_buyer_limit")?.into(),
                stock: get_count(row, "stock_units")?.into(),
            };
            Ok((VoucherId::new(get(row, "id")?), sale))
        })
        .collect()
}

async fn adjustments(
    session: &mut Session,
    items: &[BatchItem],
) -> Result<HashMap<AdjustmentId, KnownAdjustment>, Trouble> {
    const SQL: &str = concat!(
        "SELECT a.id, a.voucher_id, a.delta, a.state FROM ",
        wanted_ids!(),
        "STRAIGHT_JOIN stock_adjustments a ON a.id = wanted.id FOR UPDATE"
    );
    let ids: BTreeSet<u64> = decisions(items)
        .filter_map(|decision| match decision {
            Decision::Withdrawn { adjustment, .. } => Some(adjustment.get()),
            _ => None,
        })
        .collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = session
        .rows(statement(SQL).bind(json_ids(ids.into_iter())))
        .await?;
    rows.iter()
        .map(|row| {
            let adjustment = KnownAdjustment {
                voucher: VoucherId::new(get(row, "voucher_id")?),
                delta: get(row, "delta")?,
                state: row::read_adjustment(get(row, "state")?)?,
            };
            Ok((AdjustmentId::new(get(row, "id")?), adjustment))
        })
        .collect()
}

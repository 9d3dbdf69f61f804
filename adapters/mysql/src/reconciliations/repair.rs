//! Repairs: an update for the gate, in a transaction that finds the order as it was seen.

use seckill_application::Fault;
use seckill_application::ports::DifferenceKind;
use seckill_domain::{Claim, GateChange, OrderStatus, VoucherId};

use crate::fault::Trouble;
use crate::row::{get, read_status};
use crate::session::{Session, give_up, statement};
use crate::store::Store;
use crate::unit_of_work::releases;

const PORT: &str = "reconciliations.repair";

pub(super) async fn repair(
    store: &Store,
    kind: DifferenceKind,
    claim: &Claim,
    seen: Option<OrderStatus>,
) -> Result<bool, Fault> {
    let change = kind
        .mended_by(claim)
        .ok_or_else(|| Fault::broken(PORT, "no update mends this"))?;
    let mut session = store.begin(PORT).await?;
    match work(&mut session, claim, seen, change).await {
        Ok(true) => {
            let committed = session.commit().await;
            committed.map_err(|trouble| trouble.at_commit(PORT))?;
            Ok(true)
        }
        Ok(false) => Ok(false),
        Err(trouble) => Err(give_up(session, PORT, trouble).await),
    }
}

/// `false` if the order moved, or if there is no such voucher.
async fn work(
    session: &mut Session,
    claim: &Claim,
    seen: Option<OrderStatus>,
    change: GateChange,
) -> Result<bool, Trouble> {
    if seen.is_none() {
        hold_writers(session, claim.voucher).await?;
    }
    if lock_status(session, claim).await? != seen
        || !releases::lock_stock(session, claim.voucher).await?
    {
        return Ok(false);
    }
    releases::push_update(session, claim.voucher, &[change]).await?;
    Ok(true)
}

/// An order that is not there has no row to lock. Until the end of the transaction nobody commits
/// it: who does has its partition's position.
async fn hold_writers(session: &mut Session, voucher: VoucherId) -> Result<(), Trouble> {
    const SQL: &str = "SELECT p.partition_id FROM partitions p \
         WHERE p.partition_id = (SELECT ? MOD d.partitions FROM deployment d WHERE d.id = 1) \
         FOR UPDATE";
    session.row(statement(SQL).bind(voucher.get())).await?;
    Ok(())
}

/// An order's stage, locked. One that is parked counts as queued, and no more as waiting.
async fn lock_status(session: &mut Session, claim: &Claim) -> Result<Option<OrderStatus>, Trouble> {
    const ORDER: &str = "SELECT status FROM orders WHERE id = ? FOR UPDATE";
    const PARKED: &str =
        "SELECT id FROM parked_messages WHERE order_id = ? AND state = 'parked' LIMIT 1";
    let id = claim.order.get();
    let order = session.row(statement(ORDER).bind(id)).await?;
    let status = order
        .map(|order| read_status(get(&order, "status")?))
        .transpose()?;
    if !matches!(status, None | Some(OrderStatus::Waiting)) {
        return Ok(status);
    }
    let parked = session.row(statement(PARKED).bind(id)).await?;
    Ok(parked.map(|_| OrderStatus::Queued).or(status))
}

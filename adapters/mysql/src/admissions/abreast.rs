//! Two halves of a batch of grants, written at the same time.
//!
//! Nearly all of a transaction's time goes into rows that nobody else wants; only the partition's
//! position and the stock are everybody's. So the second half writes its rows while the first does,
//! and moves the position when the first is committed: whoever was fenced meanwhile finds nothing to
//! move then, and nothing of the half remains.
//!
//! The database does not know that one waits for the other. Should somebody hold what the first half
//! needs and wait for what the second has, nobody would ever go on; so the second waits a moment only,
//! and then lets go of its rows and is written after the first.

use std::collections::HashSet;
use std::time::Duration;

use seckill_application::Effect;
use seckill_application::ports::BatchItem;
use seckill_domain::{Claim, Decision};
use tokio::sync::oneshot;

use super::apply::{self, Look, Settled, Stop, Work, end, run, undo};
use super::plan::Plan;
use super::slice::Slice;
use super::{PORT, read_head, writes};
use crate::fault::Trouble;
use crate::meters::LedgerMeters;
use crate::session::Session;
use crate::store::Store;

/// Least items of a batch that is parted: fewer are written as quickly as a second transaction begins.
const PARTED_MIN: usize = 400;
/// How long a half with its rows written waits for the one before it, which has as much to do.
const PATIENCE: Duration = Duration::from_millis(250);

/// The halves of a slice that may be written at the same time: grants, none of which wants a row of
/// the other half.
pub(super) fn halves(whole: Slice<'_>) -> Option<(Slice<'_>, Slice<'_>)> {
    if whole.items.len() < PARTED_MIN {
        return None;
    }
    let (first, second) = whole.whole_halves()?;
    let mut orders = HashSet::with_capacity(first.items.len());
    let mut buyers = HashSet::with_capacity(first.items.len());
    for item in first.items {
        let claim = granted(item)?;
        orders.insert(claim.order);
        buyers.insert(claim.buyer);
    }
    for item in second.items {
        let claim = granted(item)?;
        if orders.contains(&claim.order) || buyers.contains(&claim.buyer) {
            return None;
        }
    }
    Some((first, second))
}

fn granted(item: &BatchItem) -> Option<&Claim> {
    match item.decision()? {
        Decision::Granted(claim) => Some(claim),
        _ => None,
    }
}

/// Applies both halves.
pub(super) async fn settle<'b>(
    store: &Store,
    whole: Slice<'b>,
    (first, second): (Slice<'b>, Slice<'b>),
) -> Result<Settled, Stop> {
    let (committed, turn) = oneshot::channel();
    let leading = async {
        let outcome = run(store, first, Look::Swift).await;
        // The other half may have let go meanwhile.
        let _ = committed.send(matches!(outcome, Ok(Some(_))));
        outcome
    };
    let (first, followed) = tokio::join!(leading, follow(store, second, turn));
    let Some(mut settled) = first? else {
        return apply::look_closely(store, whole).await;
    };
    let rest = match followed {
        Ok(Followed::Committed(rest)) => {
            LedgerMeters::add_one(&store.meters.batches_abreast);
            rest
        }
        Ok(Followed::Refused) => apply::look_closely(store, second).await?,
        Ok(Followed::LetGo) => apply::settle(store, second).await?,
        // No connection to be had, a lock that did not come free: nothing of it remains either, and
        // what the first has committed is to be told.
        Err(Stop::Fault(fault)) if fault.effect() == Effect::None => {
            tracing::debug!(fault = fault.chain(), "a half is written after the other");
            apply::settle(store, second).await?
        }
        Err(stop) => return Err(stop),
    };
    settled.append(rest);
    Ok(settled)
}

/// What became of a half that was written beside the one before it.
enum Followed {
    Committed(Settled),
    /// The database does not take it as it is; nothing of it remains.
    Refused,
    /// Its turn has not come; nothing of it remains.
    LetGo,
}

async fn follow(
    store: &Store,
    slice: Slice<'_>,
    turn: oneshot::Receiver<bool>,
) -> Result<Followed, Stop> {
    let Some(mut session) = store.begin_beside(PORT).await? else {
        return Ok(Followed::LetGo);
    };
    let Some(worked) = work(&mut session, slice, turn).await.transpose() else {
        undo(store, session).await?;
        return Ok(Followed::LetGo);
    };
    Ok(match end(store, session, worked).await? {
        Some(settled) => Followed::Committed(settled),
        None => Followed::Refused,
    })
}

/// Writes the rows of a half, and the rest when its turn comes. `None` if that did not come.
async fn work(
    session: &mut Session,
    slice: Slice<'_>,
    turn: oneshot::Receiver<bool>,
) -> Result<Option<Work>, Trouble> {
    let Some(plan) = Plan::of_news(slice.items) else {
        return Ok(Some(Work::Refused));
    };
    let Some(due) = writes::rows(session, &plan).await? else {
        return Ok(Some(Work::Refused));
    };
    if !matches!(tokio::time::timeout(PATIENCE, turn).await, Ok(Ok(true))) {
        return Ok(None);
    }
    if !writes::advance(session, &slice).await? {
        let head = read_head(session, slice.partition).await?;
        return Ok(Some(Work::Stale(head)));
    }
    Ok(Some(if writes::stock(session, &plan).await? {
        Work::Done(Settled::by(plan, due))
    } else {
        Work::Refused
    }))
}

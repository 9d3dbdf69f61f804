//! A message is applied after all.

use seckill_application::Fault;
use seckill_application::ports::{BatchItem, ParkReason, ParkedReply, ParkedState, Verdict};

use super::Row;
use super::settle::{give_back, lock, note};
use crate::admissions;
use crate::fault::Trouble;
use crate::session::{Session, give_up};
use crate::store::Store;

const PORT: &str = "parked_messages.replay";

/// Applies a message as if it came now, with the units it holds back in the stock. Whatever is not
/// as it should be leaves everything as it is.
pub(super) async fn replay(store: &Store, id: u64) -> Result<ParkedReply, Fault> {
    let mut session = store.begin(PORT).await?;
    match work(&mut session, id).await {
        Ok(Ok(())) => {
            let committed = session.commit().await;
            committed.map_err(|trouble| trouble.at_commit(PORT))?;
            Ok(ParkedReply::Settled)
        }
        Ok(Err(reply)) => Ok(reply),
        Err(Trouble::Refused(error)) => {
            tracing::debug!(%error, id, "the database refused a replay");
            Ok(ParkedReply::StillUnfit(ParkReason::BadValues))
        }
        Err(trouble) => Err(give_up(session, PORT, trouble).await),
    }
}

/// `Err` is an answer with which nothing changes.
async fn work(session: &mut Session, id: u64) -> Result<Result<(), ParkedReply>, Trouble> {
    let Some(row) = lock(session, id).await? else {
        return Ok(Err(ParkedReply::NotFound));
    };
    match &row.message.state {
        ParkedState::Parked => {}
        ParkedState::Replayed => return Ok(Err(ParkedReply::Settled)),
        ParkedState::Discarded(_) => return Ok(Err(ParkedReply::Conflict)),
    }
    let Some(items) = items(&row) else {
        return Ok(Err(ParkedReply::StillUnfit(ParkReason::Unreadable)));
    };
    let plan = admissions::judge_again(session, &items, row.held).await?;
    match plan.verdict() {
        Verdict::Confirmed | Verdict::AlreadyThere => {}
        Verdict::Parked(reason) => return Ok(Err(ParkedReply::StillUnfit(reason))),
        Verdict::Rejected(_) => {
            return Ok(Err(ParkedReply::StillUnfit(ParkReason::BadValues)));
        }
    }
    give_back(session, &row).await?;
    if !plan
        .write(session, row.message.partition, row.epoch)
        .await?
    {
        return Ok(Err(ParkedReply::StillUnfit(ParkReason::BadValues)));
    }
    note(session, id, &ParkedState::Replayed).await?;
    Ok(Ok(()))
}

fn items(row: &Row) -> Option<[BatchItem; 1]> {
    Some([BatchItem::Decision {
        sequence: row.sequence,
        entry: row.message.entry,
        decision: row.decision.clone()?,
    }])
}

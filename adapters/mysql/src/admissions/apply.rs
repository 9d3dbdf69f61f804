//! Applying a batch: swiftly if everything in it is news, with a closer look otherwise.

use seckill_application::Fault;
use seckill_application::ports::{AdmissionBatch, Applied, PartitionHead, Verdict};
use seckill_domain::{OrderId, Timestamp};

use super::plan::Plan;
use super::slice::Slice;
use super::writes::{self, Written};
use super::{judge, known, read_head};
use crate::fault::Trouble;
use crate::meters::LedgerMeters;
use crate::session::{Session, give_up};
use crate::store::Store;

const PORT: &str = "admissions.apply";

/// How a slice is looked at.
#[derive(Debug, Clone, Copy)]
enum Look {
    /// Taken for news.
    Swift,
    /// Judged by what the ledger knows.
    Close,
    /// Parked, whatever it is.
    Park,
}

/// What a slice came to if it is committed.
struct Settled {
    verdicts: Vec<Verdict>,
    due: Vec<(OrderId, Timestamp)>,
}

/// What became of a slice.
enum Outcome {
    Committed(Settled),
    Stale(PartitionHead),
    /// The database did not take it; nothing changed.
    Refused,
}

/// What a transaction came to before it is committed or rolled back.
enum Work {
    Done(Settled),
    Stale(PartitionHead),
    Refused,
}

pub(super) async fn apply(store: &Store, batch: &AdmissionBatch) -> Result<Applied, Fault> {
    let whole = Slice::whole(batch).map_err(|what| Fault::broken(PORT, what))?;
    match run(store, whole, Look::Swift).await? {
        Outcome::Committed(Settled { verdicts, due }) => Ok(Applied::Committed {
            verdicts,
            head: whole.to,
            due,
        }),
        Outcome::Stale(head) => Ok(Applied::Stale(head)),
        Outcome::Refused => {
            LedgerMeters::add_one(&store.meters.batches_reexamined);
            look_closely(store, whole).await
        }
    }
}

/// Judges the slice by what the ledger knows. Should the database still refuse it, the halves are
/// tried by themselves, down to the single item that it does not like, which is parked.
async fn look_closely(store: &Store, whole: Slice<'_>) -> Result<Applied, Fault> {
    let mut verdicts = Vec::with_capacity(whole.items.len());
    let mut due = Vec::new();
    let mut ahead = vec![(whole, Look::Close)];
    while let Some((slice, look)) = ahead.pop() {
        match run(store, slice, look).await? {
            Outcome::Committed(more) => {
                verdicts.extend(more.verdicts);
                due.extend(more.due);
            }
            Outcome::Stale(head) => return Ok(Applied::Stale(head)),
            Outcome::Refused => match (slice.halves(), look) {
                (Some((first, second)), _) => {
                    ahead.push((second, Look::Close));
                    ahead.push((first, Look::Close));
                }
                (None, Look::Park) => {
                    return Err(Fault::broken(PORT, "a message cannot be parked"));
                }
                (None, _) => ahead.push((slice, Look::Park)),
            },
        }
    }
    Ok(Applied::Committed {
        verdicts,
        head: whole.to,
        due,
    })
}

/// One transaction.
async fn run(store: &Store, slice: Slice<'_>, look: Look) -> Result<Outcome, Fault> {
    let mut session = store.begin_writing(PORT).await?;
    let outcome = match work(&mut session, slice, look).await {
        Ok(Work::Done(settled)) => {
            let committed = session.commit().await;
            committed.map_err(|trouble| trouble.at_commit(PORT))?;
            store.keep(session);
            return Ok(Outcome::Committed(settled));
        }
        Ok(Work::Stale(head)) => Outcome::Stale(head),
        Ok(Work::Refused) => Outcome::Refused,
        Err(Trouble::Refused(error)) => {
            tracing::debug!(%error, ?look, "the database refused a batch");
            Outcome::Refused
        }
        Err(trouble) => return Err(give_up(session, PORT, trouble).await),
    };
    let undone = session.rollback().await;
    undone.map_err(|trouble| trouble.before_commit(PORT))?;
    store.keep(session);
    Ok(outcome)
}

async fn work(session: &mut Session, slice: Slice<'_>, look: Look) -> Result<Work, Trouble> {
    let news = match look {
        Look::Swift => Plan::of_news(slice.items),
        Look::Close | Look::Park => None,
    };
    if matches!(look, Look::Swift) && news.is_none() {
        return Ok(Work::Refused);
    }
    if !writes::advance(session, &slice).await? {
        return Ok(Work::Stale(read_head(session, slice.partition).await?));
    }
    if news.is_some() && !known::waiting(session, slice.items).await?.is_empty() {
        return Ok(Work::Refused);
    }
    let plan = match (news, look) {
        (Some(plan), _) => plan,
        (None, Look::Park) => {
            judge::park_all(known::load(session, slice.items).await?, slice.items)?
        }
        (None, _) => judge::judge(known::load(session, slice.items).await?, slice.items)?,
    };
    let written = writes::write(session, slice.partition, slice.from.epoch, &plan).await?;
    Ok(match written {
        Written::All(due) => Work::Done(Settled {
            verdicts: plan.verdicts,
            due,
        }),
        Written::NotAll => Work::Refused,
    })
}

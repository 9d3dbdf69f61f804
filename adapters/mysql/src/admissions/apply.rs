//! Applying a batch: swiftly if everything in it is news, with a closer look otherwise.

use seckill_application::Fault;
use seckill_application::ports::{AdmissionBatch, Applied, PartitionHead, Verdict};
use seckill_domain::{OrderId, Timestamp};

use super::plan::Plan;
use super::slice::Slice;
use super::{PORT, abreast, judge, known, read_head, writes};
use crate::fault::Trouble;
use crate::meters::LedgerMeters;
use crate::session::{Session, give_up};
use crate::store::Store;

/// How a slice is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) enum Look {
    /// Taken for news.
    Swift,
    /// Judged by what the ledger knows.
    Close,
    /// Parked, whatever it is.
    Park,
}

/// What a slice comes to if it is committed.
#[derive(Default)]
pub(super) struct Settled {
    verdicts: Vec<Verdict>,
    due: Vec<(OrderId, Timestamp)>,
}

impl Settled {
    /// By a plan whose windows end then.
    pub(super) fn by(plan: Plan<'_>, due: Vec<(OrderId, Timestamp)>) -> Self {
        let verdicts = plan.verdicts;
        Self { verdicts, due }
    }

    /// Together with what the items after it came to.
    pub(super) fn append(&mut self, rest: Self) {
        self.verdicts.extend(rest.verdicts);
        self.due.extend(rest.due);
    }
}

/// Why the rest of a batch is not applied.
pub(super) enum Stop {
    /// It does not continue the ledger, which is there.
    Stale(PartitionHead),
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// What a transaction comes to before it is committed or rolled back.
pub(super) enum Work {
    Done(Settled),
    Stale(PartitionHead),
    /// The database does not take it as it is.
    Refused,
}

pub(super) async fn apply(store: &Store, batch: &AdmissionBatch) -> Result<Applied, Fault> {
    let whole = Slice::whole(batch).map_err(|what| Fault::broken(PORT, what))?;
    let settled = match abreast::halves(whole) {
        Some(halves) => abreast::settle(store, whole, halves).await,
        None => settle(store, whole).await,
    };
    match settled {
        Ok(Settled { verdicts, due }) => Ok(Applied::Committed {
            verdicts,
            head: whole.to,
            due,
        }),
        Err(Stop::Stale(head)) => Ok(Applied::Stale(head)),
        Err(Stop::Fault(fault)) => Err(fault),
    }
}

/// Applies a slice, taken for news unless the database refuses that.
pub(super) async fn settle(store: &Store, slice: Slice<'_>) -> Result<Settled, Stop> {
    match run(store, slice, Look::Swift).await? {
        Some(settled) => Ok(settled),
        None => look_closely(store, slice).await,
    }
}

/// Applies a slice that was refused, as what the ledger knows has it. Should the database still refuse
/// it, the halves are tried by themselves, down to the single item that it does not like, which is
/// parked.
pub(super) async fn look_closely(store: &Store, refused: Slice<'_>) -> Result<Settled, Stop> {
    LedgerMeters::add_one(&store.meters.batches_reexamined);
    let mut settled = Settled::default();
    let mut ahead = vec![(refused, Look::Close)];
    while let Some((slice, look)) = ahead.pop() {
        if let Some(more) = run(store, slice, look).await? {
            settled.append(more);
            continue;
        }
        match (slice.halves(), look) {
            (Some((first, second)), _) => {
                ahead.push((second, Look::Close));
                ahead.push((first, Look::Close));
            }
            (None, Look::Park) => {
                return Err(Fault::broken(PORT, "a message cannot be parked").into());
            }
            (None, _) => ahead.push((slice, Look::Park)),
        }
    }
    Ok(settled)
}

/// One transaction. `None` if it was refused, and nothing changed.
pub(super) async fn run(
    store: &Store,
    slice: Slice<'_>,
    look: Look,
) -> Result<Option<Settled>, Stop> {
    let mut session = store.begin_writing(PORT).await?;
    let worked = work(&mut session, slice, look).await;
    end(store, session, worked).await
}

/// Commits what was worked out, or undoes it.
pub(super) async fn end(
    store: &Store,
    mut session: Session,
    worked: Result<Work, Trouble>,
) -> Result<Option<Settled>, Stop> {
    let refused = match worked {
        Ok(Work::Done(settled)) => {
            let committed = session.commit().await;
            committed.map_err(|trouble| trouble.at_commit(PORT))?;
            store.keep(session);
            return Ok(Some(settled));
        }
        Ok(Work::Stale(head)) => Err(Stop::Stale(head)),
        Ok(Work::Refused) => Ok(None),
        Err(Trouble::Refused(error)) => {
            tracing::debug!(%error, "the database refused a batch");
            Ok(None)
        }
        Err(trouble) => return Err(give_up(session, PORT, trouble).await.into()),
    };
    undo(store, session).await?;
    refused
}

/// Rolls a transaction back.
pub(super) async fn undo(store: &Store, mut session: Session) -> Result<(), Fault> {
    let undone = session.rollback().await;
    undone.map_err(|trouble| trouble.before_commit(PORT))?;
    store.keep(session);
    Ok(())
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
        Some(due) => Work::Done(Settled::by(plan, due)),
        None => Work::Refused,
    })
}

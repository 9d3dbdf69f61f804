//! What waits to be told: a row for all events of one statement, claimed and deleted as a whole.
//!
//! A batch is the events from its first number to its last that its connection wrote. Several
//! statements may draw numbers at once, so that the events of another lie between them. Rows that
//! another transaction has locked are passed over: relays never wait for each other, nor for
//! transactions that are writing.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use seckill_application::ports::LeaseOwner;
use seckill_domain::{Event, EventId};
use sqlx::mysql::MySqlRow;

use super::{event, event_columns, micros};
use crate::fault::Trouble;
use crate::json_rows::{json_ids, json_parts, wanted_ids};
use crate::row::get;
use crate::session::{Session, statement};

/// Most numbers of one read.
const READ_MAX: usize = 1_000;

/// A batch, with its events in the order of their numbers.
struct Batch {
    first: u64,
    last: u64,
    writer: u64,
    events: Vec<Event>,
}

impl Batch {
    fn read(row: &MySqlRow) -> Result<Self, Trouble> {
        Ok(Self {
            first: get(row, "first_id")?,
            last: get(row, "last_id")?,
            writer: get(row, "written_by")?,
            events: Vec::new(),
        })
    }
}

/// Claims the oldest events, at most `max`. A batch of which only a part fits is cut in two.
pub(super) async fn claim(
    session: &mut Session,
    owner: &LeaseOwner,
    max: usize,
    hold: Duration,
) -> Result<Vec<Event>, Trouble> {
    adopt(session, max).await?;
    let mut batches = free(session, owner, max).await?;
    fill(session, &mut batches).await?;
    let (batches, gone) = batches
        .into_iter()
        .partition::<Vec<_>, _>(|it| !it.events.is_empty());
    remove(session, gone.iter().map(|batch| batch.first)).await?;
    let mut claimed: Vec<Event> = Vec::new();
    let mut firsts = Vec::new();
    for batch in &batches {
        let room = max - claimed.len();
        if room == 0 {
            break;
        }
        if room < batch.events.len() {
            cut(session, batch, room).await?;
        }
        claimed.extend(batch.events.iter().take(room));
        firsts.push(batch.first);
    }
    hold_on(session, owner, hold, &firsts).await?;
    claimed.sort_unstable_by_key(|event| event.id);
    Ok(claimed)
}

/// What a process of the version before has written, an event a row, becomes batches.
async fn adopt(session: &mut Session, max: usize) -> Result<(), Trouble> {
    const FIND: &str = "SELECT e.id FROM event_outbox e FORCE INDEX (event_outbox_by_state) \
         WHERE e.published = 0 ORDER BY e.id LIMIT ? FOR UPDATE SKIP LOCKED";
    const MARK: &str = concat!(
        "UPDATE ",
        wanted_ids!(),
        "STRAIGHT_JOIN event_outbox e ON e.id = wanted.id \
         SET e.published = 1, e.written_by = CONNECTION_ID()"
    );
    const ENTER: &str = concat!(
        "INSERT INTO event_batches (first_id, last_id, written_by, events) \
         SELECT wanted.id, wanted.id, CONNECTION_ID(), 1 FROM ",
        wanted_ids!()
    );
    let found = session.rows(statement(FIND).bind(max as u64)).await?;
    if found.is_empty() {
        return Ok(());
    }
    let ids: Vec<u64> = found
        .iter()
        .map(|row| get(row, "id"))
        .collect::<Result<_, _>>()?;
    let ids = json_ids(ids.into_iter());
    session.execute(statement(MARK).bind(&ids)).await?;
    session.execute(statement(ENTER).bind(&ids)).await.map(drop)
}

/// The oldest batches that nobody else has claimed, locked: enough for `max` events.
async fn free(
    session: &mut Session,
    owner: &LeaseOwner,
    max: usize,
) -> Result<Vec<Batch>, Trouble> {
    const FREE: &str = "SELECT first_id, last_id, written_by, events FROM event_batches \
         WHERE claimed_until IS NULL OR claimed_until <= UTC_TIMESTAMP(3) OR claimed_by = ? \
         ORDER BY first_id LIMIT ? FOR UPDATE SKIP LOCKED";
    let read = statement(FREE).bind(owner.0.as_str()).bind(max as u64);
    let mut batches = Vec::new();
    let mut events = 0;
    for row in &session.rows(read).await? {
        if events >= max {
            break;
        }
        events += usize::try_from(get::<u32>(row, "events")?).unwrap_or(usize::MAX);
        batches.push(Batch::read(row)?);
    }
    Ok(batches)
}

/// Reads the events of batches.
async fn fill(session: &mut Session, batches: &mut [Batch]) -> Result<(), Trouble> {
    const EVENTS: &str = concat!(
        "SELECT ",
        event_columns!(),
        ", e.written_by FROM ",
        wanted_ids!(),
        "STRAIGHT_JOIN event_outbox e ON e.id = wanted.id"
    );
    let numbers: Vec<u64> = batches.iter().flat_map(|it| it.first..=it.last).collect();
    let mut found: HashMap<(u64, u64), Event> = HashMap::with_capacity(numbers.len());
    for numbers in numbers.chunks(READ_MAX) {
        let ids = json_ids(numbers.iter().copied());
        for row in &session.rows(statement(EVENTS).bind(ids)).await? {
            let Some(writer) = get::<Option<u64>>(row, "written_by")? else {
                continue;
            };
            let event = event(row)?;
            found.insert((event.id.get(), writer), event);
        }
    }
    for batch in batches {
        let numbers = batch.first..=batch.last;
        batch.events = numbers
            .filter_map(|id| found.get(&(id, batch.writer)).copied())
            .collect();
    }
    Ok(())
}

/// Leaves the first `keep` events in a batch and makes another of the rest, claimed as it is: whoever
/// asks again for fewer than he has keeps the others.
async fn cut(session: &mut Session, batch: &Batch, keep: usize) -> Result<(), Trouble> {
    const REST: &str = "INSERT INTO event_batches \
           (first_id, last_id, written_by, events, claimed_by, claimed_until) \
         SELECT ?, b.last_id, b.written_by, ?, b.claimed_by, b.claimed_until \
         FROM event_batches b WHERE b.first_id = ?";
    const SHORTEN: &str = "UPDATE event_batches SET last_id = ?, events = ? WHERE first_id = ?";
    let (kept, rest) = batch.events.split_at(keep);
    let (Some(last), Some(first)) = (kept.last(), rest.first()) else {
        return Ok(());
    };
    let enter = statement(REST).bind(first.id.get());
    let enter = enter.bind(rest.len() as u64).bind(batch.first);
    session.execute(enter).await?;
    let shorten = statement(SHORTEN).bind(last.id.get());
    let shorten = shorten.bind(kept.len() as u64).bind(batch.first);
    session.execute(shorten).await.map(drop)
}

/// Writes down who has batches, and until when.
async fn hold_on(
    session: &mut Session,
    owner: &LeaseOwner,
    hold: Duration,
    firsts: &[u64],
) -> Result<(), Trouble> {
    const HOLD: &str = concat!(
        "UPDATE ",
        wanted_ids!(),
        "STRAIGHT_JOIN event_batches b ON b.first_id = wanted.id \
         SET b.claimed_by = ?, \
           b.claimed_until = TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(3))"
    );
    if firsts.is_empty() {
        return Ok(());
    }
    let hold = statement(HOLD)
        .bind(json_ids(firsts.iter().copied()))
        .bind(owner.0.as_str())
        .bind(micros(hold));
    session.execute(hold).await.map(drop)
}

/// Takes events out of what waits to be told. What is left of a batch stays claimed, event by event.
///
/// Batches are read without a lock, because a relay that looks for free ones has all of them locked
/// for a moment, and then named by their first numbers. Meanwhile a batch can only lose events at its
/// end, to another batch: what is removed is never more than what was read.
pub(super) async fn told(session: &mut Session, ids: &[EventId]) -> Result<(), Trouble> {
    const AROUND: &str = "SELECT first_id, last_id, written_by FROM event_batches \
         WHERE first_id <= ? AND last_id >= ? ORDER BY first_id";
    let told: HashSet<EventId> = ids.iter().copied().collect();
    let (Some(first), Some(last)) = (told.iter().min(), told.iter().max()) else {
        return Ok(());
    };
    let around = statement(AROUND).bind(last.get()).bind(first.get());
    let rows = session.rows(around).await?;
    let mut batches: Vec<Batch> = rows.iter().map(Batch::read).collect::<Result<_, _>>()?;
    fill(session, &mut batches).await?;
    let is_told = |event: &Event| told.contains(&event.id);
    batches.retain(|batch| batch.events.iter().any(is_told));
    let untold = |batch: &Batch| -> Vec<u64> {
        let rest = batch.events.iter().filter(|event| !is_told(event));
        rest.map(|event| event.id.get()).collect()
    };
    let rests: Vec<(u64, Vec<u64>)> = batches.iter().map(|it| (it.first, untold(it))).collect();
    scatter(session, &rests).await?;
    let done = rests.iter().filter(|(first, rest)| !rest.contains(first));
    remove(session, done.map(|(first, _)| *first)).await
}

/// Makes batches of one of what is left of batches, claimed as they are.
async fn scatter(session: &mut Session, rests: &[(u64, Vec<u64>)]) -> Result<(), Trouble> {
    const SQL: &str = "INSERT INTO event_batches \
           (first_id, last_id, written_by, events, claimed_by, claimed_until) \
         SELECT rest.id, rest.id, b.written_by, 1, b.claimed_by, b.claimed_until \
         FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
             of_batch BIGINT UNSIGNED PATH '$[0]', \
             id BIGINT UNSIGNED PATH '$[1]')) rest \
           STRAIGHT_JOIN event_batches b ON b.first_id = rest.of_batch \
         ON DUPLICATE KEY UPDATE last_id = event_batches.first_id, events = 1";
    let pairs = rests
        .iter()
        .flat_map(|(first, rest)| rest.iter().map(move |id| (*first, *id)));
    for part in json_parts(pairs)? {
        session.execute(statement(SQL).bind(part.text)).await?;
    }
    Ok(())
}

/// Deletes batches, by their first numbers.
async fn remove(session: &mut Session, firsts: impl Iterator<Item = u64>) -> Result<(), Trouble> {
    const SQL: &str = concat!(
        "DELETE b FROM ",
        wanted_ids!(),
        "STRAIGHT_JOIN event_batches b ON b.first_id = wanted.id"
    );
    let firsts: Vec<u64> = firsts.collect();
    if firsts.is_empty() {
        return Ok(());
    }
    let firsts = json_ids(firsts.into_iter());
    session.execute(statement(SQL).bind(firsts)).await.map(drop)
}

//! Entries that cannot be read, and the decisions that are lost in them.

use seckill_domain::Sequence;

use super::OrderWriter;
use crate::Fault;
use crate::ports::{Delivery, EntryId, StreamReply, Taken};

/// Most decisions of one entry.
const DECISIONS_MAX: u64 = 128;
/// Entries that are looked through for one that can be read.
const FOLLOWING_MAX: usize = 64;

/// What stands in the stream after an entry.
enum Following {
    /// The next one that can be read begins with this decision.
    Decision(Sequence),
    /// Nothing that can be read.
    Nothing,
    /// More than is worth to look through.
    Unknown,
}

impl OrderWriter {
    /// The numbers that an entry which cannot be read has taken: those between what is applied and
    /// what stands behind it. The gate decided them, and no other entry tells of them; whoever took
    /// that for a stream that went back would begin a new epoch for one entry. `None` for an entry
    /// that can be read, and for one that somebody else has put there.
    pub(super) async fn taken_by(
        &self,
        delivery: &Delivery,
        applied: Sequence,
    ) -> Result<Option<Taken>, Fault> {
        if delivery.body.is_ok() {
            return Ok(None);
        }
        // Before the look at the stream: what the gate has decided by now stands there.
        let decided = self.decided().await?;
        let Some(sequence) = decided.filter(|decided| *decided > applied) else {
            return Ok(None);
        };
        let last = match self.following(delivery.id).await? {
            Following::Decision(next) => Sequence::new(next.get().saturating_sub(1)),
            Following::Nothing => sequence,
            Following::Unknown => return Ok(None),
        };
        let count = last.get().saturating_sub(applied.get());
        let is_theirs = last <= sequence && (1..=DECISIONS_MAX).contains(&count);
        let first = applied.next();
        Ok(is_theirs.then_some(Taken { first, last }))
    }

    async fn following(&self, entry: EntryId) -> Result<Following, Fault> {
        let reply = self
            .stream
            .read_after(self.partition, self.head.epoch, entry, FOLLOWING_MAX)
            .await?;
        let StreamReply::Entries(entries) = reply else {
            return Ok(Following::Unknown);
        };
        let readable = entries.iter().find_map(|it| it.body.as_ref().ok());
        Ok(match readable {
            Some(entry) => Following::Decision(entry.first),
            None if entries.len() < FOLLOWING_MAX => Following::Nothing,
            None => Following::Unknown,
        })
    }
}

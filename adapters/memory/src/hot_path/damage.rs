//! What can happen to a Redis: it loses everything, its latest writes, or a single key; and things
//! stand in it that nobody of ours wrote.

use seckill_application::Fault;
use seckill_application::ports::{Entry, EntryId, Unreadable};
use seckill_domain::{Decision, OrderId, PartitionId, Sale, VoucherId};

use super::MemoryHotPath;
use super::delay_queue::Delays;
use super::partition::{Decided, Partition};
use super::slot::Slot;

/// One piece of the hot data: what is one key in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// A voucher's facts: terms, free units, counts.
    Sale(VoucherId),
    /// Who holds units of a voucher.
    Holders(VoucherId),
    /// Who waits for a voucher.
    Waiters(VoucherId),
    /// The used idempotency keys of a voucher.
    Keys(VoucherId),
    /// A partition's epoch and sequence.
    Meta(PartitionId),
    /// A partition's stream, with its consumer group.
    Stream(PartitionId),
    /// The consumer group of a partition's stream.
    Group(PartitionId),
    /// A partition's index of decided orders.
    Decided(PartitionId),
}

const UNREADABLE_BYTES_MAX: usize = 4_096;

impl MemoryHotPath {
    /// Loses everything, as FLUSHALL does.
    pub fn wipe(&self) {
        self.shared.store().wipe();
        self.shared.wake_all();
    }

    /// Loses the latest `writes` writes, as a failover to a replica that is behind does. Returns how
    /// many it lost: no more than [`HotPathOptions::undo_depth`](super::HotPathOptions::undo_depth).
    pub fn lose_last(&self, writes: usize) -> usize {
        let lost = self.shared.store().lose_last(writes);
        self.shared.wake_all();
        lost
    }

    /// How many writes were remembered so far, for [`MemoryHotPath::lose_last`]: what was written
    /// since a moment is what this number has risen by.
    pub fn writes_remembered(&self) -> u64 {
        self.shared.store().remembered
    }

    /// Loses one piece. `false` if there was nothing of it: an empty collection is no key.
    pub fn delete(&self, piece: Piece) -> bool {
        let partition = match piece {
            Piece::Sale(voucher)
            | Piece::Holders(voucher)
            | Piece::Waiters(voucher)
            | Piece::Keys(voucher) => self.shared.options.partitions.of(voucher),
            Piece::Meta(partition)
            | Piece::Stream(partition)
            | Piece::Group(partition)
            | Piece::Decided(partition) => partition,
        };
        let deleted = self.damage(partition, |partition| partition.delete(piece));
        self.shared.wake_all();
        deleted.unwrap_or(false)
    }

    /// Loses the delay queue. `false` if there was nothing in it.
    pub fn lose_delays(&self) -> bool {
        let lost = self.shared.store().change_delays(|delays| {
            let there = !delays.is_empty();
            *delays = Delays::default();
            (there, there)
        });
        self.shared.wake_all();
        lost
    }

    /// Puts an entry on the stream that is not ours, or not whole. Returns where it stands; `None`
    /// if there is no stream.
    pub fn plant_entry(&self, partition: PartitionId, raw: &str) -> Option<EntryId> {
        let mut end = raw.len().min(UNREADABLE_BYTES_MAX);
        while !raw.is_char_boundary(end) {
            end -= 1;
        }
        let body = Err(Unreadable {
            raw: raw[..end].to_owned(),
            reason: "not an entry of ours".to_owned(),
            named: None,
        });
        self.plant(partition, body)
    }

    /// Puts a well-formed entry on the stream that the gate never decided: whatever epoch, numbers
    /// and decisions it says. Returns where it stands; `None` if there is no stream.
    pub fn plant_forgery(&self, partition: PartitionId, entry: Entry) -> Option<EntryId> {
        self.plant(partition, Ok(entry))
    }

    /// Has the gate write decisions down that no sale took part in, with the next numbers. `false`
    /// if the partition is not there.
    pub fn plant_decisions(&self, partition: PartitionId, decisions: Vec<Decision>) -> bool {
        let now = self.shared.clock.now();
        let planted = self.damage(partition, |partition| {
            let live = partition.live();
            live.map(|mut live| live.journal.append(now, decisions))
        });
        planted.is_ok_and(|planted| planted.is_some())
    }

    fn plant(&self, partition: PartitionId, body: Result<Entry, Unreadable>) -> Option<EntryId> {
        let now = self.shared.clock.now();
        let planted = self.damage(partition, |partition| {
            let stream = partition.stream.as_mut()?;
            let id = stream.next_id(now);
            stream.push(id, body);
            partition.writes += 1;
            Some(id)
        });
        planted.ok().flatten()
    }

    pub(super) fn damage<T>(
        &self,
        partition: PartitionId,
        act: impl FnOnce(&mut Partition) -> T,
    ) -> Result<T, Fault> {
        let act = |partition: &mut Partition, _| act(partition);
        self.shared.change("memory_hot_path.damage", partition, act)
    }
}

impl Partition {
    fn delete(&mut self, piece: Piece) -> bool {
        let deleted = match piece {
            Piece::Sale(voucher) => self.slots.get_mut(&voucher).is_some_and(lose_facts),
            Piece::Holders(voucher) => self.lose(
                voucher,
                Keep {
                    holders: false,
                    ..Keep::ALL
                },
            ),
            Piece::Waiters(voucher) => self.lose(
                voucher,
                Keep {
                    waiters: false,
                    ..Keep::ALL
                },
            ),
            Piece::Keys(voucher) => self.lose(
                voucher,
                Keep {
                    keys: false,
                    ..Keep::ALL
                },
            ),
            Piece::Meta(_) => self.meta.take().is_some(),
            Piece::Stream(_) => self.stream.take().is_some(),
            Piece::Group(_) => {
                let stream = self.stream.as_mut();
                stream.is_some_and(|stream| stream.group.take().is_some())
            }
            Piece::Decided(_) => self.lose_decided(),
        };
        self.writes += u64::from(deleted);
        deleted
    }

    /// Loses a collection of a voucher. The facts count what should be there, so a sale with a
    /// collection gone is not open any more.
    fn lose(&mut self, voucher: VoucherId, keep: Keep) -> bool {
        let Some(slot) = self.slots.get_mut(&voucher) else {
            return false;
        };
        let Some(sale) = &mut slot.sale else {
            return false;
        };
        let rest = rebuilt(voucher, sale, sale.pulse().free, keep);
        if pieces(&rest) == pieces(sale) {
            return false;
        }
        *sale = rest;
        slot.open_in = None;
        slot.opened_by = None;
        true
    }

    fn lose_decided(&mut self) -> bool {
        let empty = |decided: &Decided| decided.orders.is_empty() && decided.adjustments.is_empty();
        if self.decided.as_ref().is_none_or(empty) {
            return false;
        }
        self.decided = None;
        true
    }
}

/// What of a sale is kept.
#[derive(Clone, Copy)]
pub(super) struct Keep {
    holders: bool,
    /// Of the holders, all but this order.
    but: Option<OrderId>,
    waiters: bool,
    keys: bool,
}

impl Keep {
    pub(super) const ALL: Self = Self {
        holders: true,
        but: None,
        waiters: true,
        keys: true,
    };

    /// All but one holder.
    pub(super) const fn all_but(order: OrderId) -> Self {
        Self {
            but: Some(order),
            ..Self::ALL
        }
    }
}

/// A sale put together again from what is kept of it.
pub(super) fn rebuilt(voucher: VoucherId, sale: &Sale, free: u32, keep: Keep) -> Sale {
    let mut rest = Sale::new(voucher, *sale.terms(), free, sale.pulse().version);
    for (buyer, held) in sale.holders().filter(|_| keep.holders) {
        if keep.but != Some(held.order) {
            rest.restore_holder(buyer, *held);
        }
    }
    for seat in sale.waitlist().seats().filter(|_| keep.waiters) {
        rest.restore_seat(seat.clone());
    }
    for (buyer, key, first) in sale.keys().filter(|_| keep.keys) {
        rest.restore_key(buyer, key.clone(), *first);
    }
    rest
}

fn pieces(sale: &Sale) -> [usize; 3] {
    [
        sale.holders().count(),
        sale.waitlist().seats().count(),
        sale.keys().count(),
    ]
}

/// Without its facts a voucher is unknown; what else there is of it survives.
fn lose_facts(slot: &mut Slot) -> bool {
    let known = slot.open_in.is_some() || slot.retired;
    slot.shut();
    known
}

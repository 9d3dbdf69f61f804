//! A partition's stream, read whole.

use seckill_application::ports::{Delivery, EntryId, HotPath, StreamReply};
use seckill_domain::{Decision, Epoch, PartitionId, Sequence, VoucherId};

const PAGE: usize = 512;

/// What stands in a stream.
pub(super) struct StreamLog {
    pub(super) deliveries: Vec<Delivery>,
}

impl StreamLog {
    /// Reads the stream from its start, and holds it to what always is true of one: entries rise,
    /// are of this epoch, decide something, and are numbered without a gap.
    pub(super) async fn read(hot: &HotPath, partition: PartitionId, epoch: Epoch) -> Self {
        let mut deliveries: Vec<Delivery> = Vec::new();
        loop {
            let after = deliveries.last().map_or(EntryId::START, |last| last.id);
            let reply = hot
                .stream
                .read_after(partition, epoch, after, PAGE)
                .await
                .unwrap();
            let StreamReply::Entries(page) = reply else {
                panic!("there is no stream of epoch {epoch}");
            };
            let last_page = page.len() < PAGE;
            deliveries.extend(page);
            if last_page {
                break;
            }
        }
        let log = Self { deliveries };
        assert!(
            log.deliveries.is_sorted_by(|a, b| a.id < b.id),
            "entries in order"
        );
        for entry in log
            .deliveries
            .iter()
            .filter_map(|delivery| delivery.body.as_ref().ok())
        {
            assert_eq!(entry.epoch, epoch);
            assert!(!entry.decisions.is_empty(), "an entry without a decision");
        }
        let numbers: Vec<u64> = log.numbered().map(|(number, _)| number.get()).collect();
        assert!(
            numbers.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "a gap in {numbers:?}"
        );
        log
    }

    /// Every decision with its number.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (Sequence, &Decision)> {
        let entries = self
            .deliveries
            .iter()
            .filter_map(|delivery| delivery.body.as_ref().ok());
        entries.flat_map(|entry| {
            let numbers = (entry.first.get()..).map(Sequence::new);
            numbers.zip(&entry.decisions)
        })
    }

    /// The decisions about one voucher.
    pub(super) fn about(&self, voucher: VoucherId) -> Vec<Decision> {
        let about = self.numbered().map(|(_, decision)| decision);
        about
            .filter(|decision| decision.voucher() == voucher)
            .cloned()
            .collect()
    }

    /// How many decisions each entry holds.
    pub(super) fn sizes(&self) -> Vec<usize> {
        let entries = self.deliveries.iter();
        entries
            .map(|delivery| delivery.body.as_ref().map_or(0, |e| e.decisions.len()))
            .collect()
    }

    /// The last decision's number.
    pub(super) fn last(&self) -> Sequence {
        self.numbered()
            .last()
            .map_or(Sequence::default(), |(number, _)| number)
    }

    /// Every entry's place.
    pub(super) fn ids(&self) -> Vec<EntryId> {
        self.deliveries.iter().map(|delivery| delivery.id).collect()
    }

    /// The last entry's place.
    pub(super) fn end(&self) -> EntryId {
        self.deliveries
            .last()
            .map_or(EntryId::START, |last| last.id)
    }
}

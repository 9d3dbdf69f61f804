//! The steps of loading, in a line each.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use seckill_application::ports::{
    GateLoader, HotPath, LoadBegun, LoadChunk, LoadStep, LoadToken, OpenSale, Opened, Survivors,
};
use seckill_domain::{Claim, Decision, Epoch, Partitions, Seat, Sequence, VoucherId};

use super::opening::LONG;
use super::stream_log::StreamLog;

/// A load under way.
pub(super) struct Load<'a> {
    hot: &'a HotPath,
    voucher: VoucherId,
    token: LoadToken,
    /// How many chunks were loaded.
    chunks: AtomicUsize,
}

impl<'a> Load<'a> {
    /// Under this token, which need not be good for anything.
    pub(super) fn under(hot: &'a HotPath, voucher: VoucherId, token: &str) -> Self {
        let token = LoadToken(token.to_owned());
        Self {
            hot,
            voucher,
            token,
            chunks: AtomicUsize::default(),
        }
    }

    /// Begun, with the partition's last decision.
    pub(super) async fn begun(
        hot: &'a HotPath,
        voucher: VoucherId,
        token: &str,
    ) -> (Self, Sequence) {
        let load = Self::under(hot, voucher, token);
        let begun = load.begin(LONG).await;
        let LoadBegun::Begun { sequence, .. } = begun else {
            panic!("cannot begin to load: {begun:?}");
        };
        (load, sequence)
    }

    fn loader(&self) -> &dyn GateLoader {
        &*self.hot.loader
    }

    pub(super) async fn begin(&self, ttl: Duration) -> LoadBegun {
        let begun = self
            .loader()
            .begin_load(self.voucher, &self.token, ttl)
            .await;
        begun.unwrap()
    }

    pub(super) async fn append(&self, holders: &[Claim], seats: &[Seat]) -> LoadStep {
        let appended = self
            .loader()
            .append_again(self.voucher, &self.token, holders, seats)
            .await;
        appended.unwrap()
    }

    pub(super) async fn load(&self, chunk: &LoadChunk, place: usize) -> LoadStep {
        let loaded = self
            .loader()
            .load(self.voucher, &self.token, chunk, place)
            .await;
        let step = loaded.unwrap();
        if matches!(step, LoadStep::Done(_)) {
            self.chunks.store(place + 1, Ordering::Relaxed);
        }
        step
    }

    /// Loads a chunk that must be taken.
    pub(super) async fn loaded(&self, chunk: &LoadChunk, place: usize) {
        let step = self.load(chunk, place).await;
        assert!(matches!(step, LoadStep::Done(_)), "{step:?}");
    }

    pub(super) async fn open(&self, sale: &OpenSale) -> Opened {
        self.open_with(sale, self.chunks.load(Ordering::Relaxed))
            .await
    }

    /// Opens as if so many chunks had been loaded.
    pub(super) async fn open_with(&self, sale: &OpenSale, chunks: usize) -> Opened {
        let opened = self
            .loader()
            .open(self.voucher, &self.token, sale, chunks)
            .await;
        opened.unwrap()
    }

    pub(super) async fn abandon(&self) {
        self.loader()
            .abandon(self.voucher, &self.token)
            .await
            .unwrap();
    }

    /// Every step is refused, and none does anything.
    pub(super) async fn assert_not_mine(&self, sale: &OpenSale, claim: &Claim) {
        let holders = std::slice::from_ref(claim);
        assert_eq!(self.append(holders, &[]).await, LoadStep::NotMine);
        assert_eq!(self.load(&LoadChunk::default(), 0).await, LoadStep::NotMine);
        assert_eq!(self.open(sale).await, Opened::NotMine);
    }
}

/// All survivors, page by page.
pub(super) async fn survivors(hot: &HotPath, voucher: VoucherId) -> Survivors {
    let mut all = Survivors {
        holders: Vec::new(),
        seats: Vec::new(),
        next: None,
    };
    let mut cursor = 0;
    loop {
        let page = hot.loader.survivors(voucher, cursor).await.unwrap();
        all.holders.extend(page.holders);
        all.seats.extend(page.seats);
        match page.next {
            Some(next) => cursor = next,
            None => break,
        }
    }
    // A page may repeat what another had.
    all.holders.sort_by_key(|claim| claim.order);
    all.holders.dedup();
    all.seats.sort_by_key(|seat| seat.ticket);
    all.seats.dedup();
    all
}

/// What a stream says about a voucher.
pub(super) async fn decisions(
    hot: &HotPath,
    partitions: Partitions,
    epoch: Epoch,
    voucher: VoucherId,
) -> Vec<Decision> {
    let log = StreamLog::read(hot, partitions.of(voucher), epoch).await;
    log.about(voucher)
}

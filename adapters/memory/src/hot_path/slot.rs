//! The place of one voucher at the gate.

use seckill_application::ports::{LoadChunk, LoadToken, NotLoaded, OpenSale};
use seckill_domain::{Epoch, Sale, Sequence, Timestamp, VoucherId};

/// What the gate has of a voucher.
#[derive(Debug, Clone, Default)]
pub(super) struct Slot {
    /// What is there, whether or not it may be trusted: survivors are read from it.
    pub(super) sale: Option<Sale>,
    /// The life of the partition in which the sale was opened; `None` while it may not be trusted.
    pub(super) open_in: Option<Epoch>,
    /// Who opened it, so that the same call again is answered the same.
    pub(super) opened_by: Option<LoadToken>,
    pub(super) retired: bool,
    pub(super) loading: Option<Loading>,
}

/// A load under way.
#[derive(Debug, Clone)]
pub(super) struct Loading {
    pub(super) token: LoadToken,
    pub(super) epoch: Epoch,
    pub(super) deadline: Timestamp,
    /// The last decision that may be about this voucher: a snapshot without it is too old.
    pub(super) mark: Sequence,
    pub(super) staged: Vec<LoadChunk>,
}

impl Slot {
    /// The sale, if it is open.
    pub(super) fn open_sale(
        &mut self,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<&mut Sale, NotLoaded> {
        if self.is_loading(epoch, now) {
            return Err(NotLoaded::Loading);
        }
        if self.retired {
            return Err(NotLoaded::Retired);
        }
        if self.open_in != Some(epoch) {
            return Err(NotLoaded::Voucher);
        }
        self.sale.as_mut().ok_or(NotLoaded::Voucher)
    }

    /// Whether somebody's token is alive.
    pub(super) fn is_loading(&self, epoch: Epoch, now: Timestamp) -> bool {
        let alive = |loading: &Loading| loading.epoch == epoch && now < loading.deadline;
        self.loading.as_ref().is_some_and(alive)
    }

    /// The load under way, if it is this token's and alive.
    pub(super) fn loading_of(
        &mut self,
        token: &LoadToken,
        epoch: Epoch,
        now: Timestamp,
    ) -> Option<&mut Loading> {
        let alive = self.is_loading(epoch, now);
        self.loading
            .as_mut()
            .filter(|loading| alive && loading.token == *token)
    }

    /// Admits nobody any more until the sale is opened again.
    pub(super) fn shut(&mut self) {
        self.open_in = None;
        self.opened_by = None;
        self.retired = false;
    }
}

impl Loading {
    /// The sale that was loaded.
    pub(super) fn into_sale(self, voucher: VoucherId, open: &OpenSale) -> Sale {
        let mut sale = Sale::new(voucher, open.terms, open.free, open.version);
        for chunk in self.staged {
            for holder in chunk.holders {
                sale.restore_holder(holder.buyer, holder.held);
            }
            for seat in chunk.seats {
                sale.restore_seat(seat);
            }
            for used in chunk.keys {
                sale.restore_key(used.buyer, used.key, used.first);
            }
        }
        sale
    }
}

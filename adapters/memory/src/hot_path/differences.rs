//! Single differences between the gate and everybody else, planted one by one: what reconciliation
//! has to find.

use std::sync::atomic::Ordering;

use seckill_domain::{BuyerId, Held, OrderId, Sale, Seat, VoucherId};

use super::MemoryHotPath;
use super::damage::{Keep, rebuilt};
use super::partition::Partition;

impl MemoryHotPath {
    /// Makes the gate forget that an order holds units; no unit becomes free, and the gate's counts
    /// agree with what is left. `false` if it does not know of any.
    pub fn drop_holder(&self, voucher: VoucherId, order: OrderId) -> bool {
        self.alter(voucher, |sale| {
            let known = sale.holders().any(|(_, held)| held.order == order);
            let keep = Keep::all_but(order);
            known.then(|| rebuilt(voucher, sale, sale.pulse().free, keep))
        })
    }

    /// Makes the gate believe that a buyer holds units; none is taken for them. `false` if it does
    /// not have the voucher.
    pub fn plant_holder(&self, voucher: VoucherId, buyer: BuyerId, held: Held) -> bool {
        self.alter(voucher, |sale| {
            let mut altered = sale.clone();
            altered.restore_holder(buyer, held);
            Some(altered)
        })
    }

    /// Makes the gate believe that a buyer waits in this place, or in none. `false` if it does not have
    /// the voucher.
    pub fn plant_place(&self, voucher: VoucherId, buyer: BuyerId, seat: Option<Seat>) -> bool {
        self.alter(voucher, |sale| {
            let mut altered = sale.clone();
            altered.leave(buyer);
            if let Some(seat) = seat {
                altered.restore_seat(seat);
            }
            Some(altered)
        })
    }

    /// Makes the gate believe that so many more units are free than there are; fewer, if negative.
    /// `false` if it does not have the voucher, or not so many units.
    pub fn shift_free(&self, voucher: VoucherId, by: i32) -> bool {
        self.alter(voucher, |sale| {
            let free = sale.pulse().free.checked_add_signed(by)?;
            Some(rebuilt(voucher, sale, free, Keep::ALL))
        })
    }

    /// Makes the gate believe that there are `units` more free units than there are. `false` if it
    /// does not have the voucher.
    pub fn plant_units(&self, voucher: VoucherId, units: u32) -> bool {
        i32::try_from(units).is_ok_and(|units| self.shift_free(voucher, units))
    }

    /// Removes the message that an order's latest decision stands in from the stream, as XDEL does,
    /// pending or not. `false` if it is not there.
    pub fn remove_message(&self, voucher: VoucherId, order: OrderId) -> bool {
        let partition = self.shared.options.partitions.of(voucher);
        let removed = self.damage(partition, |partition| {
            let removed = partition
                .stream
                .as_mut()
                .is_some_and(|stream| stream.remove_message(order));
            partition.writes += u64::from(removed);
            removed
        });
        removed.unwrap_or(false)
    }

    /// Makes the message that an order's latest decision stands in unreadable. What it decided can
    /// still be made out if it `names` it. `false` if it is not there.
    pub fn spoil_message(&self, voucher: VoucherId, order: OrderId, names: bool) -> bool {
        let partition = self.shared.options.partitions.of(voucher);
        let spoilt = self.damage(partition, |partition| {
            let stream = partition.stream.as_mut();
            let spoilt = stream.is_some_and(|stream| stream.spoil_message(order, names));
            partition.writes += u64::from(spoilt);
            spoilt
        });
        spoilt.unwrap_or(false)
    }

    /// While `muted`, notices are lost on their way, and nobody is told.
    pub fn mute_notices(&self, muted: bool) {
        self.shared.notices.muted.store(muted, Ordering::Relaxed);
    }

    fn alter(&self, voucher: VoucherId, act: impl FnOnce(&Sale) -> Option<Sale>) -> bool {
        let partition = self.shared.options.partitions.of(voucher);
        let altered = self.damage(partition, |partition| partition.alter(voucher, act));
        altered.is_ok_and(|altered| altered.is_some())
    }
}

impl Partition {
    fn alter(&mut self, voucher: VoucherId, act: impl FnOnce(&Sale) -> Option<Sale>) -> Option<()> {
        let sale = self.slots.get_mut(&voucher)?.sale.as_mut()?;
        *sale = act(sale)?;
        self.writes += 1;
        Some(())
    }
}

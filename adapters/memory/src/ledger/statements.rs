//! What the statements of a transaction do to its changes.

use std::collections::btree_map::Entry;

use seckill_application::Fault;
use seckill_application::ports::{
    Adjustment, AdjustmentReply, AdjustmentState, NewAdjustment, NewVoucher, PaymentRecord, Release,
};
use seckill_domain::{
    AdjustmentId, GateChange, GateVersion, Order, OrderStatus, PaymentId, SaleStatus, Timestamp,
    Voucher, VoucherId,
};

use super::book::{AdjustmentRow, Book};
use super::changes::Changes;
use super::money::NewRefund;

impl Changes {
    pub(super) fn insert_voucher(
        &mut self,
        book: &mut Book,
        voucher: &NewVoucher,
        now: Timestamp,
    ) -> Voucher {
        let row = Voucher {
            id: book.next_voucher(),
            terms: voucher.terms.clone(),
            total_units: voucher.total_units,
            stock_units: voucher.total_units,
            status: SaleStatus::Draft,
            version: GateVersion::default(),
            created_at: now,
            retired: false,
        };
        self.vouchers.insert(row.id, row.clone());
        row
    }

    pub(super) fn save_voucher(
        &mut self,
        book: &Book,
        voucher: &Voucher,
        follow: bool,
    ) -> Result<GateVersion, Fault> {
        let id = voucher.id;
        let row = self.known_voucher(book, "unit_of_work.save_voucher", id)?;
        if row.status == SaleStatus::Draft {
            row.total_units = voucher.total_units;
            row.stock_units = voucher.stock_units;
        }
        row.terms.clone_from(&voucher.terms);
        row.status = voucher.status;
        let (version, terms) = (row.version, row.sale_terms());
        let followed = follow
            .then(|| self.follow(book, id, vec![GateChange::SetTerms(terms)]))
            .flatten();
        Ok(followed.unwrap_or(version))
    }

    pub(super) fn mark_retired(&mut self, book: &Book, id: VoucherId) -> Result<(), Fault> {
        const MARK_RETIRED: &str = "unit_of_work.mark_retired";
        let row = self.known_voucher(book, MARK_RETIRED, id)?;
        if row.status != SaleStatus::Closed {
            return Err(Fault::broken(MARK_RETIRED, "the voucher is not closed"));
        }
        row.retired = true;
        Ok(())
    }

    /// Writes the stage of those orders that are in the stage `from`. Returns how many are.
    pub(super) fn save_orders(
        &mut self,
        book: &Book,
        from: OrderStatus,
        orders: &[Order],
    ) -> usize {
        let mut saved = 0;
        for order in orders {
            let known = self.order(book, order.id);
            let Some(row) = known.filter(|row| row.status() == from) else {
                continue;
            };
            let row = Order {
                stage: order.stage.clone(),
                ..row.clone()
            };
            self.put_order(row);
            saved += 1;
        }
        saved
    }

    pub(super) fn release(
        &mut self,
        book: &Book,
        voucher: VoucherId,
        releases: &[Release],
    ) -> Result<GateVersion, Fault> {
        const RELEASE: &str = "unit_of_work.release";
        let row = self.known_voucher(book, RELEASE, voucher)?;
        row.stock_units += releases.iter().map(|it| it.quantity).sum::<u32>();
        if row.stock_units > row.total_units {
            return Err(Fault::broken(RELEASE, "more units back than there are"));
        }
        let limit = row.terms.per_buyer_limit;
        for release in releases {
            self.holding_mut(book, voucher, release.buyer, limit)
                .remove(release.quantity)
                .map_err(|refused| Fault::broken(RELEASE, refused))?;
        }
        self.push_update(
            book,
            RELEASE,
            voucher,
            releases.iter().map(change).collect(),
        )
    }

    pub(super) fn record_adjustment(
        &mut self,
        book: &mut Book,
        adjustment: &NewAdjustment,
    ) -> Result<AdjustmentReply, Fault> {
        let voucher = adjustment.voucher;
        self.voucher(book, voucher)
            .ok_or_else(|| unknown("unit_of_work.record_adjustment", voucher))?;
        let key = adjustment.key.clone().map(|key| (voucher, key));
        let known = key.as_ref().and_then(|key| self.adjustment_of(book, key));
        if let Some(known) = known {
            return Ok(if known.delta == adjustment.delta {
                AdjustmentReply::Recorded(known.clone())
            } else {
                AdjustmentReply::KeyReused
            });
        }
        let recorded = Adjustment {
            id: book.next_adjustment(),
            delta: adjustment.delta,
            state: AdjustmentState::Pending,
        };
        if let Some(key) = key {
            self.adjustment_keys.insert(key, recorded.id);
        }
        let row = AdjustmentRow {
            voucher,
            adjustment: recorded.clone(),
        };
        self.adjustments.insert(recorded.id, row);
        Ok(AdjustmentReply::Recorded(recorded))
    }

    pub(super) fn add_units(
        &mut self,
        book: &Book,
        voucher: VoucherId,
        adjustment: AdjustmentId,
        units: u32,
    ) -> Result<GateVersion, Fault> {
        const ADD_UNITS: &str = "unit_of_work.add_units";
        let known = self.adjustment(book, adjustment);
        let fits = known.is_some_and(|row| {
            row.voucher == voucher && i64::from(row.adjustment.delta) == i64::from(units)
        });
        if !fits || !self.settle_adjustment(book, adjustment, AdjustmentState::Applied) {
            return Err(Fault::broken(ADD_UNITS, "the adjustment is not pending"));
        }
        let row = self.known_voucher(book, ADD_UNITS, voucher)?;
        row.total_units += units;
        row.stock_units += units;
        let added = vec![GateChange::AddUnits { units }];
        self.push_update(book, ADD_UNITS, voucher, added)
    }

    pub(super) fn refuse_adjustment(
        &mut self,
        book: &Book,
        adjustment: AdjustmentId,
    ) -> Result<(), Fault> {
        let known = self.adjustment(book, adjustment);
        match known.map(|row| row.adjustment.state) {
            Some(AdjustmentState::Pending) => {
                self.settle_adjustment(book, adjustment, AdjustmentState::Refused);
                Ok(())
            }
            Some(AdjustmentState::Refused) => Ok(()),
            _ => Err(Fault::broken(
                "unit_of_work.refuse_adjustment",
                "the adjustment is not pending",
            )),
        }
    }

    /// Raises a voucher's version, and has the gate follow.
    pub(super) fn push_update(
        &mut self,
        book: &Book,
        name: &'static str,
        voucher: VoucherId,
        changes: Vec<GateChange>,
    ) -> Result<GateVersion, Fault> {
        self.follow(book, voucher, changes)
            .ok_or_else(|| unknown(name, voucher))
    }

    /// Writes a payment, or returns the one that was written first.
    pub(super) fn record_payment(
        &mut self,
        book: &Book,
        payment: &PaymentRecord,
    ) -> Option<PaymentRecord> {
        let id = &payment.payment;
        let known = book.money.payments.get(id).cloned();
        if known.is_some() {
            return known;
        }
        match self.payments.entry(id.clone()) {
            Entry::Occupied(ours) => Some(ours.get().clone()),
            Entry::Vacant(place) => {
                place.insert(payment.clone());
                None
            }
        }
    }

    /// Writes a refund, unless the payment has one.
    pub(super) fn record_refund(&mut self, book: &Book, payment: &PaymentId, refund: NewRefund) {
        if !book.money.has_refund(payment) {
            self.refunds.entry(payment.clone()).or_insert(refund);
        }
    }

    fn known_voucher(
        &mut self,
        book: &Book,
        name: &'static str,
        id: VoucherId,
    ) -> Result<&mut Voucher, Fault> {
        self.voucher_mut(book, id).ok_or_else(|| unknown(name, id))
    }
}

fn unknown(name: &'static str, voucher: VoucherId) -> Fault {
    Fault::broken(name, format!("there is no voucher {voucher}"))
}

fn change(release: &Release) -> GateChange {
    GateChange::Release {
        order: release.order,
        buyer: release.buyer,
        quantity: release.quantity,
    }
}

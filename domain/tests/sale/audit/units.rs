//! Units that come back, are added, taken out, or taken again.

use proptest::sample::Index;
use seckill_domain::{
    AdjustmentId, BuyerId, Claim, Decision, Followed, GateChange, GateUpdate, GateVersion,
};

use super::{Auditor, Verdict, ensure};
use crate::gate::{Gate, VOUCHER};

impl Auditor {
    pub(super) fn update(version: u64, change: GateChange) -> GateUpdate {
        GateUpdate {
            voucher: VOUCHER,
            version: GateVersion::new(version),
            changes: vec![change],
        }
    }

    pub(super) fn follow(&mut self, gate: &mut Gate, change: GateChange) -> Verdict {
        self.version = self.version.next();
        let answer = gate.follow(&Self::update(self.version.get(), change));
        ensure(
            answer == Followed::Applied && gate.pulse().version == self.version,
            || format!("the next update was answered {answer:?}"),
        )
    }

    /// An update that is not the next one changes nothing.
    pub(super) fn refused(gate: &mut Gate, version: u64, expected: &Followed) -> Verdict {
        let before = gate.pulse();
        let answer = gate.follow(&Self::update(version, GateChange::AddUnits { units: 1 }));
        ensure(answer == *expected && gate.pulse() == before, || {
            format!("update {version} was answered {answer:?}, not {expected:?}")
        })
    }

    pub(super) fn release(&mut self, gate: &mut Gate, which: Index) -> Verdict {
        if self.ever_held.is_empty() {
            return Ok(());
        }
        let claim = self.ever_held[which.index(self.ever_held.len())].clone();
        let before = gate.pulse().free;
        let release = GateChange::Release {
            order: claim.order,
            buyer: claim.buyer,
            quantity: claim.quantity,
        };
        self.follow(gate, release)?;
        let held = self.held.iter().position(|held| held.order == claim.order);
        let back = if let Some(place) = held {
            self.seen.note("released");
            self.held.remove(place).quantity
        } else {
            self.seen.note("release of nothing");
            0
        };
        ensure(gate.pulse().free == before + back, || {
            format!(
                "I1: the release of {claim:?} returned {}",
                gate.pulse().free - before
            )
        })
    }

    pub(super) fn withdraw(&mut self, gate: &mut Gate, units: u32) -> Verdict {
        let free = gate.pulse().free;
        let adjustment = AdjustmentId::new(self.sequence.get() + 1);
        match gate.withdraw(units, adjustment) {
            Ok(decision) => {
                self.seen.note("withdrawn");
                self.sequence = self.sequence.next();
                self.terms.total_units -= units;
                let voucher = VOUCHER;
                let expected = Decision::Withdrawn {
                    voucher,
                    units,
                    adjustment,
                };
                ensure(decision == expected && units <= free, || {
                    format!("{decision:?} from {free} free units")
                })
            }
            Err(said) => ensure(said == free && units > free, || {
                format!("{units} were refused with {said} of {free} free")
            }),
        }
    }

    pub(super) fn retake(&mut self, gate: &mut Gate, buyer: BuyerId, quantity: u32) -> Verdict {
        let claim = Claim {
            order: self.new_order(),
            voucher: VOUCHER,
            buyer,
            quantity,
            key: None,
        };
        let free = gate.pulse().free;
        let fits =
            quantity <= free && self.units_of(buyer) + quantity <= self.terms.per_buyer_limit;
        let taken = gate.retake(&claim);
        ensure(taken == fits, || {
            format!("retaken: {taken}, {claim:?} of {free}")
        })?;
        self.seen
            .note(if taken { "retaken" } else { "retake refused" });
        if taken {
            self.hold(claim);
            self.sequence = self.sequence.next();
        }
        Ok(())
    }
}

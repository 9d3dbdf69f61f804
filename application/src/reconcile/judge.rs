//! What is wrong about an order, by what gate and ledger have of it.

use seckill_domain::{Claim, OrderStatus, Seat};

use crate::ports::{DifferenceKind, LedgerOrder};

/// What the gate has of an order in one buyer's name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct OfGate {
    /// The units it holds.
    pub(super) held: Option<u32>,
    /// Its place on the waitlist.
    pub(super) seat: Option<Seat>,
}

impl OfGate {
    /// It holds units.
    pub(super) fn holder(quantity: u32) -> Self {
        Self {
            held: Some(quantity),
            seat: None,
        }
    }

    /// It waits.
    pub(super) fn waiter(seat: Seat) -> Self {
        Self {
            held: None,
            seat: Some(seat),
        }
    }
}

/// Whether an order holds units or waits.
pub(super) fn is_open(status: OrderStatus) -> bool {
    status.is_live() || status == OrderStatus::Waiting
}

/// What is wrong with what this claim's buyer has of its order, if the ledger has caught up with what
/// the gate had decided.
pub(super) fn judge(
    of_gate: &OfGate,
    claim: &Claim,
    ledger: Option<&LedgerOrder>,
) -> Option<DifferenceKind> {
    match ledger.filter(|order| !order.is_of(claim)) {
        Some(anothers) if anothers.is_contested_by(claim) => None,
        Some(_) => match of_gate {
            OfGate { held: Some(_), .. } => Some(DifferenceKind::NotReleased),
            OfGate { seat: Some(_), .. } => Some(DifferenceKind::WaiterUnknown),
            _ => None,
        },
        None => judge_own(of_gate, ledger),
    }
}

/// The same for an order that is this buyer's, if the ledger has it.
fn judge_own(of_gate: &OfGate, ledger: Option<&LedgerOrder>) -> Option<DifferenceKind> {
    let status = ledger.map(|order| order.status);
    match (of_gate.held, &of_gate.seat, status) {
        (Some(_), _, None | Some(OrderStatus::Waiting)) => Some(DifferenceKind::MessageGone),
        (Some(_), _, Some(status)) if !is_open(status) => Some(DifferenceKind::NotReleased),
        (Some(held), _, _) if ledger.is_some_and(|it| it.claim.quantity != held) => {
            Some(DifferenceKind::HolderGone)
        }
        // It is parked: an administrator decides what becomes of the place.
        (None, Some(_), Some(OrderStatus::Queued)) => None,
        (None, _, Some(status)) if status.is_live() => Some(DifferenceKind::HolderGone),
        (None, None, Some(OrderStatus::Waiting)) => Some(DifferenceKind::WaiterGone),
        (None, Some(seat), Some(OrderStatus::Waiting)) => {
            let agree = ledger.is_some_and(|order| order.waits_as(seat));
            (!agree).then_some(DifferenceKind::PlaceDiffers)
        }
        (_, Some(_), _) => Some(DifferenceKind::WaiterUnknown),
        (_, None, _) => None,
    }
}

/// Whether the sale has to be loaded again to mend this: no update says what the gate has to do.
/// Units that it holds for a stranger, or too many of, it may never have taken from anybody, so that
/// to release them would make units out of nothing.
pub(super) fn is_mended_by_load(
    kind: DifferenceKind,
    of_gate: &OfGate,
    claim: &Claim,
    ledger: Option<&LedgerOrder>,
) -> bool {
    match kind {
        DifferenceKind::HolderGone => of_gate.held.is_some(),
        DifferenceKind::NotReleased => ledger.is_some_and(|order| !order.is_of(claim)),
        _ => kind.is_about_place(),
    }
}

/// The same, whether or not the ledger has caught up. What may be on its way is no difference, but
/// for an order whose message stands, which is to be delivered.
pub(super) fn judge_at(
    of_gate: &OfGate,
    claim: &Claim,
    ledger: Option<&LedgerOrder>,
    caught_up: bool,
) -> Option<DifferenceKind> {
    let kind = judge(of_gate, claim, ledger)?;
    let is_unheard_of = kind == DifferenceKind::MessageGone || ledger.is_none();
    match kind {
        _ if caught_up => Some(kind),
        _ if is_unheard_of => Some(DifferenceKind::NotDelivered),
        _ => (!kind.is_about_place()).then_some(kind),
    }
}

#[cfg(test)]
mod tests {
    use seckill_domain::{BuyerId, OrderId, Ticket, VoucherId};

    use super::*;
    use DifferenceKind::{
        HolderGone, MessageGone, NotDelivered, NotReleased, PlaceDiffers, WaiterGone, WaiterUnknown,
    };
    use OrderStatus::{Cancelled, Paid, PendingPayment, Queued, Waiting, Withdrawn};

    fn seat(ticket: u64, quantity: u32) -> Seat {
        Seat {
            ticket: Ticket::new(ticket),
            order: OrderId::new(1),
            buyer: BuyerId::new(2),
            quantity,
            key: None,
        }
    }

    fn claim() -> Claim {
        Claim {
            order: OrderId::new(1),
            voucher: VoucherId::new(3),
            buyer: BuyerId::new(2),
            quantity: 1,
            key: None,
        }
    }

    fn in_ledger(status: OrderStatus) -> LedgerOrder {
        LedgerOrder {
            claim: claim(),
            status,
            ticket: Some(Ticket::new(7)),
            contested: None,
        }
    }

    #[test]
    fn what_is_anothers_is_held_and_waited_for_by_nobody_else() {
        let strangers = [
            Claim {
                buyer: BuyerId::new(9),
                ..claim()
            },
            Claim {
                voucher: VoucherId::new(9),
                ..claim()
            },
        ];
        for (stranger, status) in strangers
            .iter()
            .flat_map(|it| [Paid, Queued, Waiting, Cancelled].map(|status| (it, status)))
        {
            let order = in_ledger(status);
            let judged = |of_gate: &OfGate| judge(of_gate, stranger, Some(&order));
            let holder = OfGate::holder(1);
            assert_eq!(judged(&holder), Some(NotReleased));
            assert_eq!(judged(&OfGate::waiter(seat(7, 1))), Some(WaiterUnknown));
            assert_eq!(judged(&OfGate::default()), None);
            assert!(is_mended_by_load(
                NotReleased,
                &holder,
                stranger,
                Some(&order)
            ));
            let parked = order.contested_by(Some(stranger.clone()));
            assert_eq!(judge(&holder, stranger, Some(&parked)), None);
            assert_eq!(judge(&OfGate::default(), stranger, Some(&parked)), None);
        }
        let own = in_ledger(Paid).contested_by(Some(claim()));
        assert_eq!(own, in_ledger(Paid), "nobody else's");
    }

    #[test]
    fn only_what_no_update_mends_has_the_sale_loaded() {
        let by_load = |kind, of_gate: &OfGate, status| {
            is_mended_by_load(kind, of_gate, &claim(), Some(&in_ledger(status)))
        };
        assert!(by_load(HolderGone, &OfGate::holder(2), Paid));
        assert!(!by_load(HolderGone, &OfGate::default(), Paid));
        assert!(!by_load(NotReleased, &OfGate::holder(1), Cancelled));
        assert!(by_load(WaiterGone, &OfGate::default(), Waiting));
    }

    #[test]
    fn each_pair_is_sound_or_has_a_name() {
        let both = OfGate {
            held: Some(1),
            seat: Some(seat(7, 1)),
        };
        let cases = [
            (OfGate::default(), None, [None; 2]),
            (OfGate::default(), Some(Withdrawn), [None; 2]),
            (OfGate::default(), Some(Waiting), [Some(WaiterGone), None]),
            (OfGate::default(), Some(Paid), [Some(HolderGone); 2]),
            (
                OfGate::holder(1),
                None,
                [Some(MessageGone), Some(NotDelivered)],
            ),
            (
                OfGate::holder(1),
                Some(Waiting),
                [Some(MessageGone), Some(NotDelivered)],
            ),
            (OfGate::holder(1), Some(Queued), [None; 2]),
            (OfGate::holder(2), Some(Paid), [Some(HolderGone); 2]),
            (OfGate::holder(1), Some(PendingPayment), [None; 2]),
            (OfGate::holder(1), Some(Cancelled), [Some(NotReleased); 2]),
            (
                OfGate::waiter(seat(7, 1)),
                None,
                [Some(WaiterUnknown), Some(NotDelivered)],
            ),
            (OfGate::waiter(seat(7, 1)), Some(Waiting), [None; 2]),
            (
                OfGate::waiter(seat(6, 1)),
                Some(Waiting),
                [Some(PlaceDiffers), None],
            ),
            (
                OfGate::waiter(seat(7, 2)),
                Some(Waiting),
                [Some(PlaceDiffers), None],
            ),
            (OfGate::waiter(seat(7, 1)), Some(Queued), [None; 2]),
            (
                OfGate::waiter(seat(7, 1)),
                Some(Paid),
                [Some(HolderGone); 2],
            ),
            (
                OfGate::waiter(seat(7, 1)),
                Some(Withdrawn),
                [Some(WaiterUnknown), None],
            ),
            (both, Some(Paid), [Some(WaiterUnknown), None]),
        ];
        for (of_gate, status, expected) in cases {
            let ledger = status.map(in_ledger);
            let found = [true, false].map(|it| judge_at(&of_gate, &claim(), ledger.as_ref(), it));
            assert_eq!(found, expected, "{of_gate:?} and {status:?}");
        }
    }
}

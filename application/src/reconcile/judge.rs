//! What is wrong about an order, by what gate and ledger have of it.

use seckill_domain::{OrderStatus, Seat};

use crate::ports::{DifferenceKind, LedgerOrder};

/// What the gate has of an order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct OfGate {
    /// Whether it holds units.
    pub(super) held: bool,
    /// Its place on the waitlist.
    pub(super) seat: Option<Seat>,
}

impl OfGate {
    /// It holds units.
    pub(super) const HOLDER: Self = Self {
        held: true,
        seat: None,
    };

    /// It waits.
    pub(super) fn waiter(seat: Seat) -> Self {
        Self {
            held: false,
            seat: Some(seat),
        }
    }
}

/// Whether an order holds units or waits.
pub(super) fn is_open(status: OrderStatus) -> bool {
    status.is_live() || status == OrderStatus::Waiting
}

/// What is wrong, if the ledger has caught up with what the gate had decided.
pub(super) fn judge(of_gate: &OfGate, ledger: Option<&LedgerOrder>) -> Option<DifferenceKind> {
    let status = ledger.map(|order| order.status);
    match (of_gate.held, &of_gate.seat, status) {
        (true, _, None | Some(OrderStatus::Waiting)) => Some(DifferenceKind::MessageGone),
        (true, _, Some(status)) if !is_open(status) => Some(DifferenceKind::NotReleased),
        // It is parked: an administrator decides what becomes of the place.
        (false, Some(_), Some(OrderStatus::Queued)) => None,
        (false, _, Some(status)) if status.is_live() => Some(DifferenceKind::HolderGone),
        (false, None, Some(OrderStatus::Waiting)) => Some(DifferenceKind::WaiterGone),
        (false, Some(seat), Some(OrderStatus::Waiting)) => {
            let agree = ledger.is_some_and(|order| order.waits_as(seat));
            (!agree).then_some(DifferenceKind::PlaceDiffers)
        }
        (_, Some(_), _) => Some(DifferenceKind::WaiterUnknown),
        (_, None, _) => None,
    }
}

/// The same, whether or not the ledger has caught up. What may be on its way is no difference, but
/// for an order whose message stands, which is to be delivered.
pub(super) fn judge_at(
    of_gate: &OfGate,
    ledger: Option<&LedgerOrder>,
    caught_up: bool,
) -> Option<DifferenceKind> {
    let kind = judge(of_gate, ledger)?;
    let is_unheard_of = kind == DifferenceKind::MessageGone || ledger.is_none();
    match kind {
        _ if caught_up => Some(kind),
        _ if is_unheard_of => Some(DifferenceKind::NotDelivered),
        _ => (!kind.is_about_place()).then_some(kind),
    }
}

#[cfg(test)]
mod tests {
    use seckill_domain::{BuyerId, Claim, OrderId, Ticket, VoucherId};

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

    fn in_ledger(status: OrderStatus) -> LedgerOrder {
        let claim = Claim {
            order: OrderId::new(1),
            voucher: VoucherId::new(3),
            buyer: BuyerId::new(2),
            quantity: 1,
            key: None,
        };
        LedgerOrder {
            claim,
            status,
            ticket: Some(Ticket::new(7)),
        }
    }

    #[test]
    fn each_pair_is_sound_or_has_a_name() {
        let both = OfGate {
            held: true,
            seat: Some(seat(7, 1)),
        };
        let cases = [
            (OfGate::default(), None, [None; 2]),
            (OfGate::default(), Some(Withdrawn), [None; 2]),
            (OfGate::default(), Some(Waiting), [Some(WaiterGone), None]),
            (OfGate::default(), Some(Paid), [Some(HolderGone); 2]),
            (
                OfGate::HOLDER,
                None,
                [Some(MessageGone), Some(NotDelivered)],
            ),
            (
                OfGate::HOLDER,
                Some(Waiting),
                [Some(MessageGone), Some(NotDelivered)],
            ),
            (OfGate::HOLDER, Some(Queued), [None; 2]),
            (OfGate::HOLDER, Some(PendingPayment), [None; 2]),
            (OfGate::HOLDER, Some(Cancelled), [Some(NotReleased); 2]),
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
            let found = [true, false].map(|it| judge_at(&of_gate, ledger.as_ref(), it));
            assert_eq!(found, expected, "{of_gate:?} and {status:?}");
        }
    }
}

//! What must always hold, by name. The simulator, the contract suites, the balance of a voucher,
//! reconciliation and the metrics all call these functions; nothing states an invariant twice.

use std::fmt;

/// The promises of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InvariantId {
    /// I1: every unit is free, on its way, parked, awaiting payment or paid.
    Conservation,
    /// I2: live units never exceed the total, and free stock is never negative.
    NeverOversold,
    /// I3: a buyer's live units never exceed the limit.
    Limit,
    /// I4: every order id answered as granted ends as an order its buyer can read.
    NoSilentLoss,
    /// I5: each order takes its units once and returns them at most once.
    Once,
    /// I6: an order is paid or expired, never both; late money leaves a refund record.
    PaidXorExpired,
    /// I7: the waitlist is served strictly in order of arrival.
    FairWaitlist,
    /// I8: after a fault heals, stream, pending list and outbox drain by themselves.
    Drains,
    /// I9: the same request gets the same order id.
    Idempotent,
}

impl InvariantId {
    /// Every promise, in order.
    pub const ALL: [Self; 9] = [
        Self::Conservation,
        Self::NeverOversold,
        Self::Limit,
        Self::NoSilentLoss,
        Self::Once,
        Self::PaidXorExpired,
        Self::FairWaitlist,
        Self::Drains,
        Self::Idempotent,
    ];

    /// Its short name in reports: `I1` to `I9`.
    pub fn short(self) -> &'static str {
        match self {
            Self::Conservation => "I1",
            Self::NeverOversold => "I2",
            Self::Limit => "I3",
            Self::NoSilentLoss => "I4",
            Self::Once => "I5",
            Self::PaidXorExpired => "I6",
            Self::FairWaitlist => "I7",
            Self::Drains => "I8",
            Self::Idempotent => "I9",
        }
    }
}

impl fmt::Display for InvariantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::Conservation => "conservation",
            Self::NeverOversold => "never oversold",
            Self::Limit => "limit per buyer",
            Self::NoSilentLoss => "no silent loss",
            Self::Once => "units once",
            Self::PaidXorExpired => "paid xor expired",
            Self::FairWaitlist => "fair waitlist",
            Self::Drains => "drains",
            Self::Idempotent => "idempotent",
        };
        write!(f, "{} {words}", self.short())
    }
}

/// Where every unit of one voucher is, at one position. Units, signed so that a broken count shows
/// as what it is instead of wrapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Units the sale has in all, as the ledger says.
    pub total: i64,
    /// Units nobody has, as the gate says.
    pub free: i64,
    /// Units decided by the gate and not in the ledger, and returned or added by the ledger and not
    /// at the gate.
    pub in_flight: i64,
    /// Units of entries that could not be applied and wait for an administrator.
    pub parked: i64,
    /// Units of orders that wait for payment.
    pub awaiting_payment: i64,
    /// Units of paid orders.
    pub paid: i64,
}

impl Tally {
    /// Units in live orders.
    pub fn live(&self) -> i64 {
        self.awaiting_payment + self.paid
    }

    /// Units by which conservation is off: positive if more are accounted for than there are.
    pub fn drift(&self) -> i64 {
        self.free + self.in_flight + self.parked + self.live() - self.total
    }
}

/// I1: `total = free + in_flight + parked + awaiting_payment + paid`.
pub fn conserved(tally: &Tally) -> bool {
    tally.drift() == 0
}

/// I2: live units never exceed the total, and free stock is never negative.
pub fn never_oversold(tally: &Tally) -> bool {
    tally.live() <= tally.total && tally.free >= 0
}

/// I3: a buyer's live units never exceed the limit.
pub fn within_limit(live_units: u32, per_buyer_limit: u32) -> bool {
    live_units <= per_buyer_limit
}

/// I5: the units an order took and gave back, over its whole life.
pub fn once(times_taken: u32, times_returned: u32) -> bool {
    times_taken <= 1 && times_returned <= times_taken
}

/// I7: tickets in the order in which they were served.
pub fn served_in_order(tickets: &[crate::Ticket]) -> bool {
    tickets.is_sorted_by(|earlier, later| earlier < later)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ticket;

    #[test]
    fn a_unit_in_flight_counts() {
        let tally = Tally {
            total: 10,
            free: 6,
            in_flight: 1,
            parked: 1,
            awaiting_payment: 1,
            paid: 1,
        };
        assert!(conserved(&tally));
        assert!(
            !conserved(&Tally {
                in_flight: 0,
                ..tally
            }),
            "a unit in a black hole shows"
        );
        assert!(
            !conserved(&Tally { free: 7, ..tally }),
            "a phantom unit shows"
        );
    }

    #[test]
    fn oversell_is_too_many_live_units_or_negative_stock() {
        let tally = Tally {
            total: 2,
            awaiting_payment: 1,
            paid: 1,
            ..Tally::default()
        };
        assert!(never_oversold(&tally));
        assert!(!never_oversold(&Tally { paid: 2, ..tally }));
        assert!(!never_oversold(&Tally { free: -1, ..tally }));
    }

    #[test]
    fn serving_a_later_ticket_first_is_a_queue_jump() {
        let [first, second] = [Ticket::new(7), Ticket::new(9)];
        assert!(served_in_order(&[first, second]));
        assert!(!served_in_order(&[second, first]));
        assert!(!served_in_order(&[first, first]), "the same turn twice");
    }
}

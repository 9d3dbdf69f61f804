//! The gate follows the ledger.

use super::{Followed, Held, Sale, SaleTerms};
use crate::{BuyerId, Claim, Decision, GateChange, GateUpdate, OrderId};

impl Sale {
    /// Applies what the ledger changed, if it is the next version. Units come back only from a
    /// buyer who is known to hold them. Promotion is the caller's next step.
    pub fn follow(&mut self, update: &GateUpdate) -> Followed {
        if update.version <= self.version {
            return Followed::AlreadyApplied;
        }
        if update.version != self.version.next() {
            return Followed::Gap { at: self.version };
        }
        self.version = update.version;
        for change in &update.changes {
            self.apply(change);
        }
        Followed::Applied
    }

    fn apply(&mut self, change: &GateChange) {
        match change {
            GateChange::Release {
                order,
                buyer,
                quantity,
            } => {
                if self.drop_holding(*buyer, *order) {
                    self.free += quantity;
                }
            }
            GateChange::DropPlace { order, buyer } => {
                self.waitlist.leave_order(*buyer, *order);
            }
            GateChange::AddUnits { units } => {
                self.free += units;
                self.terms.total_units += units;
            }
            GateChange::SetTerms(terms) => {
                self.terms = SaleTerms {
                    total_units: self.terms.total_units,
                    ..*terms
                };
            }
            GateChange::RestoreHolder(claim) => {
                self.waitlist.leave_order(claim.buyer, claim.order);
                let held = Held {
                    order: claim.order,
                    quantity: claim.quantity,
                    promoted: false,
                };
                self.restore_holder(claim.buyer, held);
            }
            GateChange::AppendAgain(_) => {}
        }
    }

    /// The decisions that an update has the gate append to the stream again: grants that it holds
    /// and that nobody else knows of.
    pub fn to_append(&self, update: &GateUpdate) -> Vec<Decision> {
        let held = |claim: &&Claim| self.holds(claim.buyer, claim.order);
        let claims = update.changes.iter().filter_map(|change| match change {
            GateChange::AppendAgain(claim) => Some(claim),
            _ => None,
        });
        claims
            .filter(held)
            .cloned()
            .map(Decision::Granted)
            .collect()
    }

    fn drop_holding(&mut self, buyer: BuyerId, order: OrderId) -> bool {
        let Some(orders) = self.holders.get_mut(&buyer) else {
            return false;
        };
        let before = orders.len();
        orders.retain(|held| held.order != order);
        let found = orders.len() < before;
        if orders.is_empty() {
            self.holders.remove(&buyer);
        }
        found
    }
}

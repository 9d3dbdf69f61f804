//! Random comings and goings on a waitlist, against a plain list.

use proptest::collection::vec;
use proptest::prelude::*;
use seckill_domain::{BuyerId, OrderId, Seat, Ticket, Waitlist};

#[derive(Debug, Clone)]
enum Step {
    /// A buyer joins with the next turn.
    Join(u64),
    /// A buyer is put back with a turn of his own, as loading does, in any order.
    Restore {
        buyer: u64,
        ticket: u64,
    },
    Leave(u64),
    ServeHead,
}

fn step() -> impl Strategy<Value = Step> {
    let buyer = 0..12_u64;
    prop_oneof![
        4 => buyer.clone().prop_map(Step::Join),
        2 => (buyer.clone(), 0..1_000_u64)
            .prop_map(|(buyer, ticket)| Step::Restore { buyer, ticket }),
        2 => buyer.prop_map(Step::Leave),
        1 => Just(Step::ServeHead),
    ]
}

fn seat(buyer: u64, ticket: u64) -> Seat {
    Seat {
        ticket: Ticket::new(ticket),
        // Falls while turns rise: an order of arrival must never come from an id.
        order: OrderId::new(u64::MAX - ticket),
        buyer: BuyerId::new(buyer),
        quantity: 1,
        key: None,
    }
}

/// What a waitlist is: seats sorted by turn, one per buyer.
#[derive(Default)]
struct Model(Vec<Seat>);

impl Model {
    fn join(&mut self, seat: &Seat) {
        if !self.0.iter().any(|known| known.buyer == seat.buyer) {
            self.0.push(seat.clone());
            self.0.sort_by_key(|seat| seat.ticket);
        }
    }

    fn leave(&mut self, buyer: BuyerId) -> Option<Seat> {
        let place = self.0.iter().position(|seat| seat.buyer == buyer)?;
        Some(self.0.remove(place))
    }
}

fn agree(list: &Waitlist, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(
        list.seats().collect::<Vec<_>>(),
        model.0.iter().collect::<Vec<_>>()
    );
    prop_assert_eq!(list.len() as usize, model.0.len());
    prop_assert_eq!(list.is_empty(), model.0.is_empty());
    prop_assert_eq!(list.head(), model.0.first());
    for buyer in (0..12).map(BuyerId::new) {
        let place = model.0.iter().position(|seat| seat.buyer == buyer);
        prop_assert_eq!(
            list.position(buyer).map(|at| at as usize),
            place.map(|at| at + 1)
        );
        prop_assert_eq!(list.seat(buyer), place.map(|at| &model.0[at]));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_waitlist_is_its_seats_by_turn_with_one_per_buyer(steps in vec(step(), 1..60)) {
        let mut list = Waitlist::default();
        let mut model = Model::default();
        let mut turn = 1_000;
        for step in steps {
            match step {
                Step::Join(buyer) => {
                    turn += 1;
                    list.join(seat(buyer, turn));
                    model.join(&seat(buyer, turn));
                }
                Step::Restore { buyer, ticket } => {
                    // Two seats of a ledger never have the same turn.
                    let taken = model.0.iter().any(|seat| seat.ticket.get() == ticket);
                    if !taken {
                        list.join(seat(buyer, ticket));
                        model.join(&seat(buyer, ticket));
                    }
                }
                Step::Leave(buyer) => {
                    let buyer = BuyerId::new(buyer);
                    prop_assert_eq!(list.leave(buyer), model.leave(buyer));
                }
                Step::ServeHead => {
                    if let Some(buyer) = list.head().map(|head| head.buyer) {
                        prop_assert_eq!(list.leave(buyer), model.leave(buyer));
                    }
                }
            }
            agree(&list, &model)?;
        }
    }
}

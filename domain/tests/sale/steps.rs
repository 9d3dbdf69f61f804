//! What may be asked of a sale.

use proptest::collection::vec;
use proptest::prelude::*;
use seckill_domain::{BuyerId, SaleStatus, SaleTerms, Timestamp};

/// When a sale of these tests opens, in milliseconds; they begin at 0.
pub(crate) const OPENS_AT: i64 = 2;
/// When it closes by the clock; only a part of the lives lasts that long.
pub(crate) const CLOSES_AT: i64 = 60;

/// One thing that is asked.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A press of the button.
    Admit {
        buyer: BuyerId,
        quantity: u32,
        key: Option<u8>,
    },
    /// An earlier attempt once more, with the id it had.
    Repeat { which: prop::sample::Index },
    /// A buyer leaves the waitlist.
    Leave { buyer: BuyerId },
    /// The waitlist is served.
    Promote { max: usize },
    /// The waitlist of a sale that is over is emptied.
    Drain { max: usize },
    /// The next update: an order gives its units back. Any order that was ever seen, so some have
    /// none to give.
    Release { which: prop::sample::Index },
    /// The next update: units are added.
    AddUnits { units: u32 },
    /// The next update: another status and waitlist capacity.
    SetTerms { status: SaleStatus, capacity: u32 },
    /// An update that was applied before.
    OldUpdate { back: u64 },
    /// An update whose predecessor is missing.
    EarlyUpdate { ahead: u64 },
    /// An administrator takes units out.
    Withdraw { units: u32 },
    /// A grant that was answered and lost is offered again.
    Retake { buyer: BuyerId, quantity: u32 },
    /// Time goes by.
    Wait { millis: u64 },
}

/// A sale and everything that happens to it.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    pub(crate) terms: SaleTerms,
    pub(crate) free: u32,
    pub(crate) steps: Vec<Step>,
}

/// Few buyers, few units, few keys: so that they meet.
pub(crate) fn lives() -> impl Strategy<Value = Life> {
    (0..6_u32, 1..4_u32, 0..5_u32, vec(step(), 1..80)).prop_map(
        |(free, per_buyer_limit, waitlist_capacity, steps)| Life {
            terms: SaleTerms {
                status: SaleStatus::Published,
                opens_at: Timestamp::from_millis(OPENS_AT),
                closes_at: Timestamp::from_millis(CLOSES_AT),
                per_buyer_limit,
                waitlist_capacity,
                total_units: free,
            },
            free,
            steps,
        },
    )
}

fn buyer() -> impl Strategy<Value = BuyerId> {
    (1..8_u64).prop_map(BuyerId::new)
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    let status = prop_oneof![
        6 => Just(SaleStatus::Published),
        2 => Just(SaleStatus::Paused),
        1 => Just(SaleStatus::Closed),
    ];
    prop_oneof![
        12 => (buyer(), 1..4_u32, prop::option::weighted(0.3, 0..3_u8))
            .prop_map(|(buyer, quantity, key)| Step::Admit { buyer, quantity, key }),
        2 => index().prop_map(|which| Step::Repeat { which }),
        2 => buyer().prop_map(|buyer| Step::Leave { buyer }),
        4 => (1..4_usize).prop_map(|max| Step::Promote { max }),
        1 => (1..4_usize).prop_map(|max| Step::Drain { max }),
        5 => index().prop_map(|which| Step::Release { which }),
        1 => (1..4_u32).prop_map(|units| Step::AddUnits { units }),
        1 => (status, 0..5_u32).prop_map(|(status, capacity)| Step::SetTerms { status, capacity }),
        1 => (0..3_u64).prop_map(|back| Step::OldUpdate { back }),
        1 => (2..4_u64).prop_map(|ahead| Step::EarlyUpdate { ahead }),
        1 => (1..4_u32).prop_map(|units| Step::Withdraw { units }),
        1 => (buyer(), 1..3_u32).prop_map(|(buyer, quantity)| Step::Retake { buyer, quantity }),
        4 => (1..3_u64).prop_map(|millis| Step::Wait { millis }),
    ]
}

//! What buyers ask of the gate, what it answers, and what it writes down.

use crate::{
    AdjustmentId, BuyerId, Epoch, GateChange, IdempotencyKey, OrderId, Sequence, Stage, Ticket,
    Timestamp, VoucherId,
};

/// One press of the button. The order id is chosen before the gate is asked, so that an attempt
/// whose answer was lost is settled by asking again with the same attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The id the order gets if this attempt wins one.
    pub order: OrderId,
    /// Who asks.
    pub buyer: BuyerId,
    /// How many units, at least 1.
    pub quantity: u32,
    /// The client's key for this purchase, if he sent one.
    pub key: Option<IdempotencyKey>,
}

/// Who wants or has how many units under which order: what every decision about an order carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The order.
    pub order: OrderId,
    /// Of which voucher.
    pub voucher: VoucherId,
    /// For whom.
    pub buyer: BuyerId,
    /// How many units.
    pub quantity: u32,
    /// The client's key for the purchase, if he sent one.
    pub key: Option<IdempotencyKey>,
}

impl Claim {
    /// The claim that an attempt on a voucher makes.
    pub fn of(voucher: VoucherId, attempt: &Attempt) -> Self {
        Self {
            order: attempt.order,
            voucher,
            buyer: attempt.buyer,
            quantity: attempt.quantity,
            key: attempt.key.clone(),
        }
    }
}

/// The gate's answer to an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// The units are his. Also the answer to a repeat of the very same attempt.
    Granted {
        /// The order that holds them.
        order: OrderId,
    },
    /// He has a place on the waitlist. Also the answer to a repeat of the very same attempt.
    Waitlisted {
        /// The order that waits.
        order: OrderId,
        /// His place, counted from 1.
        position: u32,
        /// His turn. What is remembered of it outlives the hot data.
        ticket: Ticket,
    },
    /// The idempotency key was used before, for the same quantity: here is what it got.
    Replayed {
        /// The order of the first use.
        order: OrderId,
        /// What the first use was told.
        first: PlaceAtFirst,
    },
    /// The idempotency key was used before, for another quantity.
    KeyReused {
        /// The order of the first use.
        order: OrderId,
    },
    /// He holds as many units as he may.
    AlreadyHeld {
        /// His live orders, the first one first.
        orders: Vec<OrderId>,
    },
    /// He waits already, at this place.
    AlreadyWaiting {
        /// The order that waits.
        order: OrderId,
        /// His place, counted from 1.
        position: u32,
    },
    /// He asked for more than he may still have.
    LimitExceeded {
        /// Units he may still have.
        remaining: u32,
    },
    /// The sale has not opened.
    NotOpen {
        /// When it does.
        opens_at: Timestamp,
    },
    /// The sale is paused.
    Paused,
    /// The sale is over.
    Closed,
    /// Nothing is left for him, and the waitlist is off or full.
    SoldOut,
}

/// What the first use of an idempotency key was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceAtFirst {
    /// Units.
    Granted,
    /// A place on the waitlist.
    Waitlisted,
}

/// What the gate wrote to the admission stream; applied to the ledger in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Units were given to a buyer.
    Granted(Claim),
    /// A buyer joined the waitlist.
    Joined {
        /// What he wants.
        claim: Claim,
        /// His turn.
        ticket: Ticket,
    },
    /// A place on the waitlist was given up.
    Left {
        /// What he wanted.
        claim: Claim,
        /// Why.
        reason: LeftReason,
    },
    /// The head of the waitlist was given units.
    Promoted(Claim),
    /// Free units were taken out of the sale by an administrator.
    Withdrawn {
        /// Of which voucher.
        voucher: VoucherId,
        /// How many.
        units: u32,
        /// By which adjustment.
        adjustment: AdjustmentId,
    },
    /// A grant or a place that was answered, that Redis then lost, and that could not be given back
    /// when it was offered again. Takes no units.
    Lost(Claim),
}

impl Decision {
    /// The voucher it is about.
    pub fn voucher(&self) -> VoucherId {
        match self {
            Self::Granted(claim)
            | Self::Joined { claim, .. }
            | Self::Left { claim, .. }
            | Self::Promoted(claim)
            | Self::Lost(claim) => claim.voucher,
            Self::Withdrawn { voucher, .. } => *voucher,
        }
    }

    /// The order it is about; a withdrawal has none.
    pub fn claim(&self) -> Option<&Claim> {
        match self {
            Self::Granted(claim)
            | Self::Joined { claim, .. }
            | Self::Left { claim, .. }
            | Self::Promoted(claim)
            | Self::Lost(claim) => Some(claim),
            Self::Withdrawn { .. } => None,
        }
    }

    /// What the gate has to follow if nothing comes of this decision after all, for which it took
    /// `units`. `None` if it took neither units nor a place.
    pub fn undone_by(&self, units: u32) -> Option<GateChange> {
        match self {
            Self::Granted(claim) | Self::Promoted(claim) => Some(GateChange::Release {
                order: claim.order,
                buyer: claim.buyer,
                quantity: units,
            }),
            Self::Joined { claim, .. } => Some(GateChange::DropPlace {
                order: claim.order,
                buyer: claim.buyer,
            }),
            Self::Withdrawn { .. } => Some(GateChange::AddUnits { units }),
            Self::Left { .. } | Self::Lost(_) => None,
        }
    }

    /// Units that left the gate's free stock by this decision and are not in the ledger until it is
    /// applied there.
    pub fn units_taken(&self) -> u32 {
        match self {
            Self::Granted(claim) | Self::Promoted(claim) => claim.quantity,
            Self::Withdrawn { units, .. } => *units,
            Self::Joined { .. } | Self::Left { .. } | Self::Lost(_) => 0,
        }
    }
}

impl Ticket {
    /// Room for the decisions of one life of a partition: 68 billion. With 2^17 lives, a ticket is
    /// below 2^53 and exact in Lua and in a sorted set's score.
    const LIFE_BITS: u32 = 36;

    /// The turn of a buyer whose joining is this decision. Its number alone would not do: a new
    /// life goes on from what the ledger has applied, so numbers of decisions that were lost come
    /// again, while their turns may have survived.
    pub const fn drawn_at(epoch: Epoch, sequence: Sequence) -> Self {
        Self::new((epoch.get() << Self::LIFE_BITS) + sequence.get())
    }
}

/// Why a place on the waitlist was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftReason {
    /// The buyer left.
    Withdrawn,
    /// The sale ended.
    ClosedOut,
    /// More units were wanted than the sale has.
    NotEnoughUnits,
    /// The buyer got as many units as he may while he waited.
    LimitReached,
}

impl LeftReason {
    /// What becomes of an order that left for this reason.
    pub fn stage(self) -> Stage {
        match self {
            Self::Withdrawn => Stage::Withdrawn,
            Self::ClosedOut => Stage::ClosedOut,
            Self::NotEnoughUnits => Stage::Rejected {
                reason: RejectReason::NotEnoughUnits,
            },
            Self::LimitReached => Stage::Rejected {
                reason: RejectReason::LimitReached,
            },
        }
    }
}

/// Why the ledger refused a decision, or an order ended without being the buyer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectReason {
    /// The ledger had no stock for it: the gate had promised too much.
    NoStock,
    /// The buyer already had as many as he may.
    LimitReached,
    /// Redis lost the grant or the place, and it could not be given back when it was offered again.
    Lost,
    /// More units were wanted than the sale has.
    NotEnoughUnits,
    /// An administrator discarded it.
    Discarded,
}

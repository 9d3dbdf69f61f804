//! The flash sale as rules: what a voucher, a sale, an order and a waitlist are, what may happen to
//! them, and what must always hold.
//!
//! Architecture invariant: nothing here reads a clock, touches a network, awaits, or knows a wire
//! format. Time comes in as an argument and answers go out as values, so every rule can be tested
//! by calling it.

// The simulation drives this: the order of a hash, which is new in each process, decides nothing.
#![warn(clippy::iter_over_hash_type)]

mod admission;
mod event;
mod gate_update;
mod holding;
mod ids;
pub mod invariants;
mod money;
mod order;
mod refund;
mod sale;
mod sequence;
mod snowflake;
mod text;
mod time;
mod voucher;
mod waitlist;

pub use admission::{Admission, Attempt, Claim, Decision, LeftReason, PlaceAtFirst, RejectReason};
pub use event::{Event, EventId, EventKind, NewEvent};
pub use gate_update::{GateChange, GateUpdate, GateVersion};
pub use holding::{Holding, HoldingRefused};
pub use ids::{AdjustmentId, BadId, BuyerId, OrderId, PartitionId, Partitions, VoucherId};
pub use money::{Currency, Money};
pub use order::{Forbidden, Order, OrderStatus, Stage, Transition};
pub use refund::{Refund, RefundReason};
pub use sale::{Followed, Held, Leave, Pulse, Remembered, Sale, SaleStatus, SaleTerms};
pub use sequence::{Continuity, Epoch, Fence, Sequence};
pub use snowflake::{ClockBehind, Snowflake};
pub use text::{BadText, IdempotencyKey, PaymentId, is_plain_line, is_plain_text};
pub use time::Timestamp;
pub use voucher::{Amendment, Invalid, SaleWindow, Voucher, VoucherRefusal, VoucherTerms};
pub use waitlist::{Seat, Ticket, Waitlist};

//! What the service does, as use cases over ports: one file each, one struct that holds only the
//! ports it uses.
//!
//! Architecture invariant: no runtime here. Nothing spawns, sleeps or reads a clock except through
//! [`ports::Clock`], so a simulator can drive every use case with a clock of its own.

// The simulation drives this: the order of a hash, which is new in each process, decides nothing.
#![warn(clippy::iter_over_hash_type)]

mod adjust_stock;
mod balance;
mod browse_vouchers;
mod cancel_order;
mod draft_voucher;
mod expire_orders;
mod fault;
mod follow_order;
mod gate_upkeep;
mod hear_payment;
mod load_sale;
mod meters;
mod patience;
mod pay_order;
pub mod ports;
mod publish_events;
mod purchase_voucher;
mod read_orders;
mod reconcile;
mod recover_partition;
mod refund_order;
mod relay_updates;
mod remembered_answers;
mod retire_sales;
mod retrying;
mod send_refunds;
mod serve_waitlist;
mod settle_parked;
mod standing;
mod steer_sale;
mod together;
mod waitlist_place;
mod wanted_sales;
mod write_orders;

pub use adjust_stock::{AdjustStock, AdjustStockReply};
pub use balance::{Balance, ReadBalance};
pub use browse_vouchers::{BrowseVouchers, VoucherView};
pub use cancel_order::{CancelOrder, CancelReply};
pub use draft_voucher::DraftVoucher;
pub use expire_orders::ExpireOrders;
pub use fault::{Effect, Fault};
pub use follow_order::FollowOrder;
pub use gate_upkeep::GateUpkeep;
pub use hear_payment::{HearPayment, HearReply, PaymentNotice};
pub use load_sale::{LoadSale, Loaded};
pub use meters::Meters;
pub use pay_order::{PayOrder, PayReply};
pub use publish_events::PublishEvents;
pub use purchase_voucher::{Purchase, PurchaseRequest, PurchaseVoucher};
pub use read_orders::{OrderView, ReadOrders};
pub use reconcile::{Reconcile, ReconcileScope};
pub use recover_partition::RecoverPartition;
pub use refund_order::{RefundOrder, RefundReply};
pub use relay_updates::{RelayUpdates, Relayed};
pub use remembered_answers::RememberedAnswers;
pub use retire_sales::RetireSales;
pub use send_refunds::SendRefunds;
pub use settle_parked::SettleParked;
pub use steer_sale::{SteerCommand, SteerReply, SteerSale};
pub use waitlist_place::{FindPlace, LeavePlace, WaitlistPlace};
pub use wanted_sales::WantedSales;
pub use write_orders::{OrderWriter, Step, WriterSettings};

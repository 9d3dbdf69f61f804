//! Stages by name.

use seckill_domain::{OrderStatus, RefundReason, RejectReason, SaleStatus};
use serde::Serialize;
use utoipa::ToSchema;

/// Where an order is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = OrderStatus)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OrderStatusWord {
    Waiting,
    Queued,
    PendingPayment,
    Paid,
    Cancelled,
    Expired,
    Refunded,
    Rejected,
    Withdrawn,
    ClosedOut,
}

impl From<OrderStatus> for OrderStatusWord {
    fn from(status: OrderStatus) -> Self {
        match status {
            OrderStatus::Waiting => Self::Waiting,
            OrderStatus::Queued => Self::Queued,
            OrderStatus::PendingPayment => Self::PendingPayment,
            OrderStatus::Paid => Self::Paid,
            OrderStatus::Cancelled => Self::Cancelled,
            OrderStatus::Expired => Self::Expired,
            OrderStatus::Refunded => Self::Refunded,
            OrderStatus::Rejected => Self::Rejected,
            OrderStatus::Withdrawn => Self::Withdrawn,
            OrderStatus::ClosedOut => Self::ClosedOut,
        }
    }
}

impl OrderStatusWord {
    /// How long to wait before looking again, in milliseconds; `None` where nothing is about to
    /// happen by itself.
    pub(crate) fn poll_after_ms(self) -> Option<u32> {
        match self {
            Self::Queued => Some(200),
            Self::Waiting => Some(2_000),
            _ => None,
        }
    }
}

/// Where a voucher is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = VoucherStatus)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SaleStatusWord {
    Draft,
    Published,
    Paused,
    Closed,
}

impl From<SaleStatus> for SaleStatusWord {
    fn from(status: SaleStatus) -> Self {
        match status {
            SaleStatus::Draft => Self::Draft,
            SaleStatus::Published => Self::Published,
            SaleStatus::Paused => Self::Paused,
            SaleStatus::Closed => Self::Closed,
        }
    }
}

/// Why an order was rejected.
pub(crate) fn reject_reason(reason: RejectReason) -> &'static str {
    match reason {
        RejectReason::NoStock => "no_stock",
        RejectReason::LimitReached => "limit_reached",
        RejectReason::Lost => "lost",
        RejectReason::NotEnoughUnits => "not_enough_units",
        RejectReason::Discarded => "discarded",
    }
}

/// Why money goes back. `too_late`: the order had ended. `too_early`: it still waits for units. `second_payment`: another payment paid it.
/// `wrong_amount`: it is not what the order costs. `unknown_order`: there is no such order.
/// `requested`: an administrator refunded the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RefundReason)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RefundReasonWord {
    TooLate,
    TooEarly,
    SecondPayment,
    WrongAmount,
    UnknownOrder,
    Requested,
}

impl From<RefundReason> for RefundReasonWord {
    fn from(reason: RefundReason) -> Self {
        match reason {
            RefundReason::TooLate => Self::TooLate,
            RefundReason::TooEarly => Self::TooEarly,
            RefundReason::SecondPayment => Self::SecondPayment,
            RefundReason::WrongAmount => Self::WrongAmount,
            RefundReason::UnknownOrder => Self::UnknownOrder,
            RefundReason::Requested => Self::Requested,
        }
    }
}

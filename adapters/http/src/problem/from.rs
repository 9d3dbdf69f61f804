//! What becomes a problem.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use seckill_application::Fault;
use seckill_domain::{Forbidden, VoucherRefusal};

use super::{FieldError, Problem};

/// Whole seconds that last at least as long, at least 1: for `Retry-After`.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs()
        .saturating_add(u64::from(wait.subsec_nanos() > 0))
        .max(1)
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self::Unavailable {
            effect: fault.effect(),
            retryable: fault.is_retryable(),
            cause: Some(fault.chain()),
        }
    }
}

impl From<Forbidden> for Problem {
    fn from(why: Forbidden) -> Self {
        match why {
            Forbidden::Expired => Self::OrderExpired,
            Forbidden::Cancelled => Self::OrderCancelled,
            Forbidden::Paid => Self::OrderPaid,
            Forbidden::Queued => Self::OrderQueued,
            Forbidden::Waiting => Self::OrderWaiting,
            Forbidden::Rejected => Self::OrderRejected,
            Forbidden::NotPaid => Self::OrderNotPaid,
            Forbidden::Refunded => Self::OrderRefunded,
        }
    }
}

impl From<VoucherRefusal> for Problem {
    fn from(why: VoucherRefusal) -> Self {
        match why {
            VoucherRefusal::Invalid(fields) => Self::ValidationFailed(
                fields
                    .iter()
                    .map(|invalid| FieldError::invalid(invalid.field, invalid.rule))
                    .collect(),
            ),
            VoucherRefusal::Frozen(fields) => Self::FrozenAfterPublish(fields),
            VoucherRefusal::WrongStatus(status) => Self::WrongStatus(status),
        }
    }
}

impl IntoResponse for Problem {
    /// Only status and the problem itself: [`crate::app::HttpApp`] writes the rest.
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

//! Every answer is one that the contract has for the call, whatever was broken when it was given.

use super::{Rule, Violation};
use crate::harness::answer::Purchase;
use crate::harness::history::{Asked, Event, Told};

/// Refusals that any call may meet: come back later, or more slowly, or send it faster.
const ANY: &[(u16, &str)] = &[
    (408, "request_timeout"),
    (429, "rate_limited"),
    (503, "overloaded"),
    (503, "unavailable"),
];
const PURCHASE: &[(u16, &str)] = &[
    (404, "voucher_not_found"),
    (409, "limit_exceeded"),
    (409, "not_open"),
    (409, "paused"),
    (409, "sold_out"),
    (410, "closed"),
    (422, "idempotency_key_reused"),
    (422, "validation_failed"),
];
const PAY: &[(u16, &str)] = &[
    (404, "order_not_found"),
    (409, "order_cancelled"),
    (409, "order_expired"),
    (409, "order_paid"),
    (409, "order_queued"),
    (409, "order_refunded"),
    (409, "order_rejected"),
    (409, "order_waiting"),
    (409, "payment_declined"),
    (409, "payment_used"),
    (422, "validation_failed"),
];
const CANCEL: &[(u16, &str)] = &[
    (404, "order_not_found"),
    (409, "order_expired"),
    (409, "order_paid"),
    (409, "order_queued"),
    (409, "order_refunded"),
    (409, "order_rejected"),
];
const LOOK: &[(u16, &str)] = &[(404, "order_not_found")];
const LEAVE: &[(u16, &str)] = &[(404, "voucher_not_found"), (409, "already_promoted")];
const NOTICE: &[(u16, &str)] = &[
    (401, "invalid_signature"),
    (409, "order_queued"),
    (409, "payment_used"),
    (422, "validation_failed"),
];

pub(super) fn judge(history: &[Event], violations: &mut Vec<Violation>) {
    for event in history {
        let (Told::Refused { status, code } | Told::Purchase(Purchase::Refused { status, code })) =
            &event.told
        else {
            continue;
        };
        let own = match &event.asked {
            Asked::Purchase { .. } => PURCHASE,
            Asked::Pay { .. } => PAY,
            Asked::Cancel { .. } => CANCEL,
            Asked::Look { .. } => LOOK,
            Asked::Leave { .. } => LEAVE,
            Asked::Notice { .. } => NOTICE,
        };
        let answer = (*status, code.as_str());
        if !ANY.contains(&answer) && !own.contains(&answer) {
            violations.push(Violation {
                broken: Rule::Contract,
                how: format!("{status} {code:?} to {:?}", event.asked),
            });
        }
    }
}

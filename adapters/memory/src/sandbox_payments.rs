//! A payment provider for demonstrations and tests: no money moves.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{Confirmation, Payments};
use seckill_domain::{Money, OrderId, PaymentId, Refund};

use crate::Chaos;

/// Payments whose id starts like this are declined.
const DECLINED: &str = "decline";

/// Refunds that are remembered; the oldest are forgotten first.
const REFUNDS_MAX: usize = 10_000;

/// Vouches for every payment but those whose id starts with `decline`, and writes down the newest
/// refunds that it is told of, each once.
#[derive(Debug, Default)]
pub struct SandboxPayments {
    chaos: Chaos,
    refunds: Mutex<BTreeMap<u64, Refund>>,
}

impl SandboxPayments {
    /// The newest refunds that it was told of, by number.
    pub fn refunds(&self) -> Vec<Refund> {
        let refunds = self.refunds.lock().unwrap_or_else(PoisonError::into_inner);
        refunds.values().cloned().collect()
    }

    /// The switchboard of its faults.
    pub fn chaos(&self) -> &Chaos {
        &self.chaos
    }
}

#[async_trait]
impl Payments for SandboxPayments {
    async fn confirm(
        &self,
        payment: &PaymentId,
        _order: OrderId,
        _amount: Money,
    ) -> Result<Confirmation, Fault> {
        let call = self.chaos.enter("payments.confirm")?;
        call.answer(if payment.as_str().starts_with(DECLINED) {
            let why = format!("the sandbox declines payments whose id starts with \"{DECLINED}\"");
            Confirmation::Declined(why)
        } else {
            Confirmation::Confirmed
        })
    }

    async fn refund(&self, refund: &Refund) -> Result<(), Fault> {
        const REFUND: &str = "payments.refund";
        let call = self.chaos.enter(REFUND)?;
        let mut refunds = self.refunds.lock().unwrap_or_else(PoisonError::into_inner);
        let known = refunds.entry(refund.id).or_insert_with(|| refund.clone());
        let same = (&known.payment, known.amount) == (&refund.payment, refund.amount);
        if refunds.len() > REFUNDS_MAX {
            refunds.pop_first();
        }
        drop(refunds);
        if !same {
            return Err(Fault::broken(REFUND, "the number is another refund's"));
        }
        call.answer(())
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use seckill_domain::{RefundReason, Timestamp};

    use super::*;

    fn money(minor: u64) -> Money {
        Money {
            minor,
            currency: "CNY".parse().unwrap(),
        }
    }

    fn refund(minor: u64) -> Refund {
        Refund {
            id: 7,
            order: OrderId::new(1),
            payment: "pay-1".parse().unwrap(),
            amount: money(minor),
            reason: RefundReason::TooLate,
            sent: false,
            created_at: Timestamp::from_millis(0),
        }
    }

    #[test]
    fn it_vouches_for_all_but_those_that_ask_to_be_declined() {
        let sandbox = SandboxPayments::default();
        let confirm = |id: &str| {
            let id = id.parse().unwrap();
            let answer = sandbox.confirm(&id, OrderId::new(1), money(80));
            answer.now_or_never().unwrap().unwrap()
        };
        assert_eq!(confirm("pay-1"), Confirmation::Confirmed);
        assert!(matches!(confirm("decline-1"), Confirmation::Declined(_)));
    }

    #[test]
    fn it_remembers_the_newest_refunds() {
        let sandbox = SandboxPayments::default();
        let last = REFUNDS_MAX as u64 + 5;
        for id in 1..=last {
            let refund = Refund { id, ..refund(80) };
            sandbox.refund(&refund).now_or_never().unwrap().unwrap();
        }
        let kept = sandbox.refunds();
        assert_eq!((kept.len(), kept[0].id), (REFUNDS_MAX, 6));
    }

    #[test]
    fn a_refund_told_twice_is_one_and_a_number_stands_for_one_refund() {
        let sandbox = SandboxPayments::default();
        let tell = |refund: &Refund| sandbox.refund(refund).now_or_never().unwrap();
        sandbox.chaos().fail_after("payments.refund", 1);
        tell(&refund(80)).unwrap_err();
        tell(&refund(80)).unwrap();
        assert!(!tell(&refund(90)).unwrap_err().is_retryable());
        assert_eq!(sandbox.refunds(), [refund(80)]);
    }
}

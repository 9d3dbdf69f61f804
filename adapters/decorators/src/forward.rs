//! The part of a purchase gate that a decorator leaves as it is.

/// Implements `PurchaseGate` for a type with a field `inner: Arc<dyn PurchaseGate>` and an own
/// `async fn decorated(&self, VoucherId, &[Attempt])`, which becomes `admit`. Every other method
/// goes straight to `inner`; with a second argument, `follow` is the own method of that name.
macro_rules! decorate_admit {
    ($decorator:ty) => {
        decorate_admit!($decorator, inner.follow);
    };
    ($decorator:ty, $($follow:ident).+) => {
        #[async_trait::async_trait]
        impl seckill_application::ports::PurchaseGate for $decorator {
            async fn admit(
                &self,
                voucher: seckill_domain::VoucherId,
                attempts: &[seckill_domain::Attempt],
            ) -> Result<seckill_application::ports::Admitted, seckill_application::Fault> {
                self.decorated(voucher, attempts).await
            }

            async fn follow(
                &self,
                update: &seckill_domain::GateUpdate,
            ) -> Result<seckill_application::ports::FollowReply, seckill_application::Fault> {
                self.$($follow).+(update).await
            }

            async fn promote(
                &self,
                voucher: seckill_domain::VoucherId,
            ) -> Result<bool, seckill_application::Fault> {
                self.inner.promote(voucher).await
            }

            async fn leave(
                &self,
                voucher: seckill_domain::VoucherId,
                buyer: seckill_domain::BuyerId,
            ) -> Result<seckill_application::ports::LeaveReply, seckill_application::Fault> {
                self.inner.leave(voucher, buyer).await
            }

            async fn withdraw(
                &self,
                voucher: seckill_domain::VoucherId,
                units: u32,
                adjustment: seckill_domain::AdjustmentId,
            ) -> Result<seckill_application::ports::WithdrawReply, seckill_application::Fault> {
                self.inner.withdraw(voucher, units, adjustment).await
            }

            async fn place(
                &self,
                voucher: seckill_domain::VoucherId,
                buyer: seckill_domain::BuyerId,
            ) -> Result<seckill_application::ports::PlaceReply, seckill_application::Fault> {
                self.inner.place(voucher, buyer).await
            }

            async fn has_decided(
                &self,
                order: seckill_domain::OrderId,
            ) -> Result<bool, seckill_application::Fault> {
                self.inner.has_decided(order).await
            }

            async fn find_order(
                &self,
                order: seckill_domain::OrderId,
            ) -> Result<Option<seckill_application::ports::GateOrder>, seckill_application::Fault>
            {
                self.inner.find_order(order).await
            }

            async fn facts(
                &self,
                vouchers: &[seckill_domain::VoucherId],
            ) -> Result<
                Vec<Option<seckill_application::ports::SaleFacts>>,
                seckill_application::Fault,
            > {
                self.inner.facts(vouchers).await
            }

            async fn tally(
                &self,
                voucher: seckill_domain::VoucherId,
                after: seckill_application::ports::EntryId,
            ) -> Result<Option<seckill_application::ports::GateTally>, seckill_application::Fault>
            {
                self.inner.tally(voucher, after).await
            }

            async fn claimants(
                &self,
                voucher: seckill_domain::VoucherId,
                buyers: &[seckill_domain::BuyerId],
            ) -> Result<
                Option<Vec<seckill_application::ports::Claimant>>,
                seckill_application::Fault,
            > {
                self.inner.claimants(voucher, buyers).await
            }

            async fn holders(
                &self,
                voucher: seckill_domain::VoucherId,
                cursor: u64,
            ) -> Result<Option<seckill_application::ports::HoldersPage>, seckill_application::Fault>
            {
                self.inner.holders(voucher, cursor).await
            }

            async fn waiters(
                &self,
                voucher: seckill_domain::VoucherId,
                cursor: u64,
            ) -> Result<Option<seckill_application::ports::WaitersPage>, seckill_application::Fault>
            {
                self.inner.waiters(voucher, cursor).await
            }

            async fn retire(
                &self,
                voucher: seckill_domain::VoucherId,
            ) -> Result<bool, seckill_application::Fault> {
                self.inner.retire(voucher).await
            }

            async fn ping(&self) -> Result<(), seckill_application::Fault> {
                self.inner.ping().await
            }
        }
    };
}

pub(crate) use decorate_admit;

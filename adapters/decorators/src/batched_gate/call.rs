//! One call of the inner gate, for everybody in it.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use seckill_application::Fault;
use seckill_application::ports::{Admitted, PurchaseGate};
use seckill_domain::VoucherId;

use super::PORT;
use super::lane::Batch;

/// A call that whoever holds it has to drive.
pub(super) struct Call {
    reply: Pin<Box<dyn Future<Output = Result<Admitted, Fault>> + Send>>,
    members: Vec<usize>,
}

impl Call {
    pub(super) fn new(inner: Arc<dyn PurchaseGate>, voucher: VoucherId, batch: Batch) -> Self {
        let Batch {
            attempts, members, ..
        } = batch;
        let reply = Box::pin(async move { inner.admit(voucher, &attempts).await });
        Self { reply, members }
    }

    /// The seats of those in it, in the order of their attempts.
    pub(super) fn members(&self) -> &[usize] {
        &self.members
    }

    /// Drives it. A panic inside is a fault to everybody in the call, and not the end of the one
    /// caller who happens to drive it.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Admitted, Fault>> {
        let reply = self.reply.as_mut();
        catch_unwind(AssertUnwindSafe(|| reply.poll(context)))
            .unwrap_or_else(|_| Poll::Ready(Err(Fault::unknown(PORT, "the gate panicked"))))
    }
}

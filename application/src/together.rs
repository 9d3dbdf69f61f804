//! Two things at the same time, without a runtime.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// What both come to, once both have.
pub(crate) async fn both<A, B>(
    first: impl Future<Output = A>,
    second: impl Future<Output = B>,
) -> (A, B) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut one, mut other) = (None, None);
    poll_fn(|context| {
        if one.is_none()
            && let Poll::Ready(done) = first.as_mut().poll(context)
        {
            one = Some(done);
        }
        if other.is_none()
            && let Poll::Ready(done) = second.as_mut().poll(context)
        {
            other = Some(done);
        }
        match (one.take(), other.take()) {
            (Some(done), Some(too)) => Poll::Ready((done, too)),
            left => {
                (one, other) = left;
                Poll::Pending
            }
        }
    })
    .await
}

//! What happens to one order, as a stream of server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::Event as Sent;
use futures::Stream;
use futures::stream;
use seckill_application::ports::Following;
use seckill_application::{Fault, OrderView};
use seckill_domain::{BuyerId, Event, EventId, EventKind, OrderId};
use serde::Serialize;

use super::OrderBody;
use crate::context::Ctx;
use crate::streams::OpenStream;
use crate::wire::{Id, Instant, OrderStatusWord};

/// How long a client waits before it comes again.
const COME_AGAIN: Duration = Duration::from_secs(2);

/// One client's reading of an order's events.
pub(super) struct Story {
    ctx: Ctx,
    order: OrderId,
    following: Box<dyn Following>,
    /// The last event that was told.
    told: EventId,
    /// The last status that was told, or shown by the snapshot.
    status: Option<OrderStatusWord>,
    ready: VecDeque<Sent>,
    /// By the monotonic clock.
    ends: Duration,
    _place: OpenStream,
}

/// An event on the wire.
#[derive(Serialize)]
struct EventBody {
    event_id: Id,
    order_id: Id,
    voucher_id: Id,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<OrderStatusWord>,
    at: Instant,
}

impl Story {
    /// `None` if the buyer has no such order. A client that has `seen` something is told what came
    /// after it; any other is told how the order is, and what comes after that. An event that the
    /// order does not have yet was seen by nobody: such a client is shown the order as well.
    pub(super) async fn begin(
        ctx: Ctx,
        place: OpenStream,
        order: OrderId,
        buyer: BuyerId,
        seen: Option<EventId>,
    ) -> Result<Option<Self>, Fault> {
        let Some((_, following)) = ctx.api.follow.follow(order, buyer).await? else {
            return Ok(None);
        };
        let ends = ctx.api.clock.monotonic() + ctx.settings.stream_lasts;
        let mut story = Self {
            ctx,
            order,
            following,
            told: EventId::default(),
            status: None,
            ready: VecDeque::new(),
            ends,
            _place: place,
        };
        let first = Sent::default().retry(COME_AGAIN);
        // The order is looked at after its last event, so that no event is older than what it shows
        // and missing from it.
        story.pass_over().await?;
        if let Some(seen) = seen.filter(|seen| *seen <= story.told) {
            story.told = seen;
            story.ready.push_back(first.comment("going on"));
            return Ok(Some(story));
        }
        let Some(view) = story.ctx.api.orders.find(order, buyer).await? else {
            return Ok(None);
        };
        story.status = Some(view.order.status().into());
        let snapshot = snapshot(first, view, story.told);
        story.ready.extend(snapshot);
        Ok(Some(story))
    }

    async fn pass_over(&mut self) -> Result<(), Fault> {
        loop {
            let events = self.news().await?;
            let Some(last) = events.last() else {
                return Ok(());
            };
            self.told = last.id;
        }
    }

    /// Nobody hears of the same status twice: a place shows in the snapshot before the ledger has
    /// it.
    fn tell(&mut self, event: &Event) {
        self.told = event.id;
        let status = match event.what.kind {
            EventKind::Order(status) => Some(status.into()),
            // Its payment window runs from now on.
            EventKind::Promoted => Some(OrderStatusWord::PendingPayment),
            _ => None,
        };
        if status.is_some() && status == self.status {
            return;
        }
        self.status = status.or(self.status);
        self.ready.extend(sent(event, status));
    }

    async fn news(&mut self) -> Result<Vec<Event>, Fault> {
        self.ctx.api.follow.events(self.order, self.told).await
    }

    pub(super) fn events(self) -> impl Stream<Item = Result<Sent, Infallible>> {
        stream::unfold(self, |mut story| async move {
            let next = story.next().await?;
            Some((Ok(next), story))
        })
    }

    /// The next event, or a comment if there is none for a while; `None` at the end.
    async fn next(&mut self) -> Option<Sent> {
        loop {
            let now = self.ctx.api.clock.monotonic();
            if self.ctx.stopping.is_cancelled() || now >= self.ends {
                // What is not told any more is told when the client comes again.
                return None;
            }
            if let Some(ready) = self.ready.pop_front() {
                return Some(ready);
            }
            match self.news().await {
                Ok(events) if !events.is_empty() => {
                    for event in &events {
                        self.tell(event);
                    }
                    continue;
                }
                Ok(_) => {}
                // The client keeps what it has: it would not come again after a refusal.
                Err(fault) => tracing::debug!(fault = fault.chain(), "no events can be read"),
            }
            let pause = self
                .ctx
                .settings
                .stream_heartbeat
                .min(self.ends.saturating_sub(now));
            let (stopping, following) = (&self.ctx.stopping, &mut self.following);
            let news = tokio::time::timeout(pause, following.changed());
            tokio::select! {
                () = stopping.cancelled() => return None,
                news = news => if news.is_err() {
                    return Some(Sent::default().comment("still here"));
                }
            }
        }
    }
}

fn snapshot(sent: Sent, view: OrderView, told: EventId) -> Option<Sent> {
    let sent = sent.id(told.get().to_string()).event("snapshot");
    sent.json_data(OrderBody::from(view)).ok()
}

/// `None` for what does not happen to orders.
fn sent(event: &Event, status: Option<OrderStatusWord>) -> Option<Sent> {
    let (order, _) = event.what.order?;
    let name = match event.what.kind {
        EventKind::Order(_) => "status",
        EventKind::Promoted => "promoted",
        EventKind::RefundRecorded => "refund_recorded",
        EventKind::VoucherPublished
        | EventKind::VoucherPaused
        | EventKind::VoucherResumed
        | EventKind::VoucherClosed
        | EventKind::VoucherAmended
        | EventKind::StockAdjusted => return None,
    };
    let body = EventBody {
        event_id: Id::numbered(event.id.get()),
        order_id: order.into(),
        voucher_id: event.what.voucher.into(),
        status,
        at: Instant(event.at),
    };
    let sent = Sent::default().id(event.id.get().to_string()).event(name);
    sent.json_data(body).ok()
}

//! Somebody who follows an order: a client of server-sent events.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use seckill_domain::{BuyerId, OrderId};
use serde_json::Value;

use super::answer::Reply;
use super::call::{Call, chain};
use super::shop::Shop;

/// Nobody waits longer for news. Longer than the heartbeat.
const PATIENCE: Duration = Duration::from_secs(20);

/// An event as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// What it says.
    pub data: Value,
}

impl News {
    /// The status that it tells; empty if it tells none.
    pub fn status(&self) -> &str {
        self.data["status"].as_str().unwrap_or_default()
    }

    /// Its name and the status that it tells.
    pub fn told(&self) -> (&str, &str) {
        (&self.name, self.status())
    }
}

/// A stream of an order's events. Dropped, its connection is closed.
#[derive(Debug)]
pub struct Follower {
    body: Incoming,
    text: String,
    comments: usize,
}

impl Shop {
    /// Follows an order, perhaps from the last event that was seen.
    ///
    /// # Errors
    /// The answer, if it is no stream.
    pub async fn try_follow(
        &self,
        order: OrderId,
        buyer: BuyerId,
        seen: Option<&str>,
    ) -> Result<Follower, Reply> {
        let mut call = Call::get(format!("/v1/orders/{order}/events")).by(buyer);
        if let Some(seen) = seen {
            call = call.header("last-event-id", seen);
        }
        let response = self.wire.open(call).await;
        let response = response.unwrap_or_else(|lost| panic!("{lost}, to following {order}"));
        let (head, body) = response.into_parts();
        if head.status != 200 {
            let body = body.collect().await.expect("a whole answer").to_bytes();
            return Err(Reply::new(&head, &body));
        }
        let kind = head.headers.get("content-type").expect("a content type");
        assert_eq!(kind, "text/event-stream");
        Ok(Follower {
            body,
            text: String::new(),
            comments: 0,
        })
    }

    /// Follows an order.
    pub async fn follow(&self, order: OrderId, buyer: BuyerId) -> Follower {
        let begun = self.try_follow(order, buyer, None).await;
        begun.unwrap_or_else(|reply| panic!("{} {}", reply.status, reply.text))
    }

    /// Follows an order from the last event that was seen.
    pub async fn follow_after(&self, order: OrderId, buyer: BuyerId, seen: u64) -> Follower {
        let begun = self.try_follow(order, buyer, Some(&seen.to_string())).await;
        begun.unwrap_or_else(|reply| panic!("{} {}", reply.status, reply.text))
    }
}

impl Follower {
    /// The next event, which must come.
    pub async fn next(&mut self) -> News {
        self.next_or_end().await.expect("an event, and not the end")
    }

    /// Events up to the one that tells this status, which must come.
    pub async fn until(&mut self, status: &str) -> Vec<News> {
        let mut told = Vec::new();
        loop {
            let news = self.next().await;
            let last = news.status() == status;
            told.push(news);
            if last {
                return told;
            }
        }
    }

    /// Waits for a comment, which says that the stream is still there; no event may come.
    pub async fn heartbeat(&mut self) {
        let heard = self.comments;
        while self.comments == heard {
            let block = self.block().await.expect("a comment, and not the end");
            assert_eq!(block, None, "nothing had happened");
        }
    }

    /// What comes until the service ends the stream, which it must do properly.
    pub async fn rest(mut self) -> Vec<News> {
        let mut told = Vec::new();
        while let Some(news) = self.next_or_end().await {
            told.push(news);
        }
        told
    }

    async fn next_or_end(&mut self) -> Option<News> {
        loop {
            if let Some(news) = self.block().await? {
                return Some(news);
            }
        }
    }

    /// The next block: an event, or `Some(None)` if it has comments and fields only. `None` at the
    /// end.
    async fn block(&mut self) -> Option<Option<News>> {
        let from = loop {
            if let Some(end) = self.text.find("\n\n") {
                break end;
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            let frame = frame.unwrap_or_else(|_| panic!("a stream was silent for {PATIENCE:?}"));
            let Some(frame) = frame else {
                assert_eq!(self.text, "", "an event was cut off");
                return None;
            };
            let frame = frame.unwrap_or_else(|error| panic!("a stream broke: {}", chain(&error)));
            if let Ok(bytes) = frame.into_data() {
                self.text += std::str::from_utf8(&bytes).expect("events are text");
            }
        };
        let block: String = self.text.drain(..from + 2).collect();
        Some(self.read(&block))
    }

    fn read(&mut self, block: &str) -> Option<News> {
        let (mut id, mut name, mut data) = (None, None, None);
        for line in block.lines().filter(|line| !line.is_empty()) {
            match line.split_once(':') {
                Some(("", _)) => self.comments += 1,
                Some(("id", value)) => id = Some(value.trim_start().parse().expect("a number")),
                Some(("event", value)) => name = Some(value.trim_start().to_owned()),
                Some(("data", value)) => data = Some(serde_json::from_str(value).expect("JSON")),
                Some(("retry", _)) => {}
                _ => panic!("no line of an event stream: {line:?}"),
            }
        }
        Some(News {
            name: name?,
            id: id.expect("every event has an id"),
            data: data.expect("every event says something"),
        })
    }
}

//! Reading server-sent events.

use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt as _;
use serde_json::Value;

use super::{Answer, Stand};

/// A stream of events that is being read.
pub(crate) struct Story {
    body: Body,
    read: String,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) data: Value,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    Event(Told),
    Comment(String),
    End,
}

/// Longer than any event takes here.
const PATIENCE: Duration = Duration::from_secs(5);

impl Stand {
    /// Follows an order, from after an event on.
    pub(crate) async fn follow(
        &self,
        order: &str,
        user: u64,
        seen: Option<&str>,
    ) -> Result<Story, Answer> {
        let mut call = self.get(&format!("/v1/orders/{order}/events")).user(user);
        if let Some(seen) = seen {
            call = call.header("last-event-id", seen);
        }
        let response = self.app.answer(call.request()).await;
        let (parts, body) = response.into_parts();
        if parts.status != 200 {
            let bytes = body.collect().await.unwrap().to_bytes();
            return Err(Answer::new(parts, &bytes));
        }
        let kind = parts.headers["content-type"].to_str().unwrap();
        assert_eq!(kind, "text/event-stream");
        assert_eq!(parts.headers["x-accel-buffering"], "no");
        assert!(parts.headers.contains_key("x-request-id"));
        Ok(Story {
            body,
            read: String::new(),
        })
    }
}

impl Story {
    /// The next event, comment or end.
    pub(crate) async fn next(&mut self) -> Next {
        loop {
            if let Some(end) = self.read.find("\n\n") {
                let next = parse(&self.read[..end]);
                self.read.drain(..end + 2);
                return next;
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame());
            match frame.await.expect("something comes") {
                Some(frame) => {
                    let bytes = frame.unwrap().into_data().unwrap();
                    self.read.push_str(str::from_utf8(&bytes).unwrap());
                }
                None => return Next::End,
            }
        }
    }

    /// The next event, whatever comments come before it.
    pub(crate) async fn event(&mut self) -> Told {
        loop {
            match self.next().await {
                Next::Event(told) => return told,
                Next::Comment(_) => {}
                Next::End => panic!("the stream has ended"),
            }
        }
    }

    /// Whether nothing comes for a while but comments.
    pub(crate) async fn is_quiet(&mut self, time: Duration) -> bool {
        let waits = async {
            loop {
                match self.next().await {
                    Next::Comment(_) => {}
                    Next::Event(_) | Next::End => return,
                }
            }
        };
        tokio::time::timeout(time, waits).await.is_err()
    }
}

fn parse(block: &str) -> Next {
    let mut told = Told {
        id: String::new(),
        name: String::new(),
        data: Value::Null,
    };
    let mut comment = String::new();
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap();
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match field {
            "id" => told.id = value,
            "event" => told.name = value,
            "data" => told.data = serde_json::from_str(&value).unwrap(),
            "retry" => assert_eq!(value, "2000"),
            "" => comment = value,
            other => panic!("{other} in {block}"),
        }
    }
    if told.name.is_empty() {
        Next::Comment(comment)
    } else {
        Next::Event(told)
    }
}

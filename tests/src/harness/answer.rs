//! What the service answers, in the words of its contract.

use hyper::HeaderMap;
use hyper::http::response::Parts;
use seckill_domain::invariants::Tally;
use seckill_domain::{OrderId, OrderStatus, VoucherId};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// An answer as it came.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, if it is JSON; else null.
    pub body: Value,
    /// The body as text.
    pub text: String,
}

impl Reply {
    pub(super) fn new(head: &Parts, body: &[u8]) -> Self {
        Self {
            status: head.status.as_u16(),
            headers: head.headers.clone(),
            body: serde_json::from_slice(body).unwrap_or(Value::Null),
            text: String::from_utf8_lossy(body).into_owned(),
        }
    }

    /// A header's value; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// A text field of the body.
    pub fn word(&self, field: &str) -> &str {
        self.body[field]
            .as_str()
            .unwrap_or_else(|| panic!("no text {field:?} in {} {}", self.status, self.text))
    }

    /// A number field of the body.
    pub fn number(&self, field: &str) -> i64 {
        self.body[field]
            .as_i64()
            .unwrap_or_else(|| panic!("no number {field:?} in {} {}", self.status, self.text))
    }

    /// The `code` of a problem; empty if it is none.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    /// The order's id, which must be a string of canonical digits.
    pub fn order_id(&self, field: &str) -> OrderId {
        self.word(field)
            .parse()
            .unwrap_or_else(|error| panic!("{field} of {}: {error}", self.text))
    }

    /// When the order's payment window ends.
    pub fn expires_at(&self) -> OffsetDateTime {
        OffsetDateTime::parse(self.word("expires_at"), &Rfc3339).expect("a time")
    }

    /// The voucher's id, which must be a string of canonical digits.
    pub fn voucher_id(&self, field: &str) -> VoucherId {
        self.word(field)
            .parse()
            .unwrap_or_else(|error| panic!("{field} of {}: {error}", self.text))
    }

    /// The stage of an order.
    pub fn order_status(&self) -> OrderStatus {
        status_of(self.word("status"))
    }

    /// Panics unless it is a problem with this status and code, in the form of RFC 9457 with all
    /// the members that the contract promises.
    #[track_caller]
    pub fn assert_problem(&self, status: u16, code: &str) -> &Self {
        let said = format!("{} {}", self.status, self.text);
        assert_eq!((self.status, self.code()), (status, code), "{said}");
        self.assert_is_problem()
    }

    /// Panics unless it is a problem.
    #[track_caller]
    pub fn assert_is_problem(&self) -> &Self {
        let said = format!("{} {}", self.status, self.text);
        assert!(
            self.header("content-type")
                .starts_with("application/problem+json"),
            "{:?} {said}",
            self.headers
        );
        assert_eq!(self.body["status"], self.status, "{said}");
        assert!(self.body["title"].is_string(), "{said}");
        assert!(self.body["code"].is_string(), "{said}");
        assert!(self.body["retryable"].is_boolean(), "{said}");
        assert!(
            matches!(self.body["effect"].as_str(), Some("none" | "unknown")),
            "{said}"
        );
        assert_eq!(
            self.body["request_id"].as_str(),
            Some(self.header("x-request-id")),
            "{said}"
        );
        self
    }

    /// Panics unless the status is this one.
    #[track_caller]
    pub fn assert_status(&self, status: u16) -> &Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }
}

/// The stage of that name on the wire and in the database.
pub(super) fn status_of(word: &str) -> OrderStatus {
    match word {
        "waiting" => OrderStatus::Waiting,
        "queued" => OrderStatus::Queued,
        "pending_payment" => OrderStatus::PendingPayment,
        "paid" => OrderStatus::Paid,
        "cancelled" => OrderStatus::Cancelled,
        "expired" => OrderStatus::Expired,
        "refunded" => OrderStatus::Refunded,
        "rejected" => OrderStatus::Rejected,
        "withdrawn" => OrderStatus::Withdrawn,
        "closed_out" => OrderStatus::ClosedOut,
        other => panic!("{other:?} is no stage of an order"),
    }
}

/// What became of a press of the button.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purchase {
    /// 202: the units are his.
    Granted {
        /// The order.
        order: OrderId,
        /// Where it is.
        status: OrderStatus,
    },
    /// 202, or 200 if the place is not new.
    Waitlisted {
        /// The order.
        order: OrderId,
        /// His place, counted from 1; 0 if the order has moved on.
        position: u64,
        /// Whether the place is new.
        joined: bool,
    },
    /// 200: at his limit.
    AlreadyHeld {
        /// The first of his orders.
        order: OrderId,
        /// All of them.
        orders: Vec<OrderId>,
    },
    /// Anything that is no success.
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it says.
        code: String,
    },
}

impl Purchase {
    /// Reads an answer to a purchase; panics if it is not one that the contract knows.
    #[track_caller]
    pub fn read(reply: &Reply) -> Self {
        if reply.status >= 400 {
            reply.assert_is_problem();
            return Self::Refused {
                status: reply.status,
                code: reply.code().to_owned(),
            };
        }
        let order = reply.order_id("order_id");
        match (reply.status, reply.word("outcome")) {
            (202, "granted") => {
                let location = reply.header("location");
                assert_eq!(location, format!("/v1/orders/{order}"), "{}", reply.text);
                let status = reply.order_status();
                if status == OrderStatus::Queued {
                    assert!(reply.number("poll_after_ms") >= 0, "{}", reply.text);
                }
                Self::Granted { order, status }
            }
            (status @ (200 | 202), "waitlisted") => Self::Waitlisted {
                order,
                position: reply.body["position"].as_u64().unwrap_or(0),
                joined: status == 202,
            },
            (200, "already_held") => Self::AlreadyHeld {
                order,
                orders: reply.body["order_ids"]
                    .as_array()
                    .unwrap_or_else(|| panic!("no order_ids in {}", reply.text))
                    .iter()
                    .map(|id| id.as_str().expect("ids are strings"))
                    .map(|id| id.parse().expect("an id"))
                    .collect(),
            },
            _ => panic!("unknown to the contract: {} {}", reply.status, reply.text),
        }
    }

    /// The order in the answer, if there is one.
    pub fn order(&self) -> Option<OrderId> {
        match self {
            Self::Granted { order, .. }
            | Self::Waitlisted { order, .. }
            | Self::AlreadyHeld { order, .. } => Some(*order),
            Self::Refused { .. } => None,
        }
    }

    /// Every order in the answer.
    pub fn orders(&self) -> Vec<OrderId> {
        match self {
            Self::AlreadyHeld { orders, .. } => orders.clone(),
            _ => self.order().into_iter().collect(),
        }
    }

    /// The order of a grant.
    pub fn granted(&self) -> Option<OrderId> {
        match self {
            Self::Granted { order, .. } => Some(*order),
            _ => None,
        }
    }

    /// Panics unless it is a grant.
    #[track_caller]
    pub fn expect_granted(&self) -> OrderId {
        self.granted()
            .unwrap_or_else(|| panic!("expected a grant, got {self:?}"))
    }

    /// Panics unless it is a place.
    #[track_caller]
    pub fn expect_waitlisted(&self) -> (OrderId, u64) {
        match self {
            Self::Waitlisted {
                order, position, ..
            } => (*order, *position),
            other => panic!("expected a place, got {other:?}"),
        }
    }

    /// Panics unless he is at his limit.
    #[track_caller]
    pub fn expect_already_held(&self) -> OrderId {
        match self {
            Self::AlreadyHeld { order, orders } => {
                assert_eq!(orders.first(), Some(order), "the first one first");
                *order
            }
            other => panic!("expected the order he has, got {other:?}"),
        }
    }

    /// The code of a refusal; empty if it is none.
    pub fn code(&self) -> &str {
        match self {
            Self::Refused { code, .. } => code,
            _ => "",
        }
    }
}

/// Where the units of a voucher are, as the service says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Balance {
    /// The units.
    pub tally: Tally,
    /// Whether the service itself says that it holds.
    pub holds: bool,
}

impl Balance {
    pub(super) fn read(reply: &Reply) -> Self {
        reply.assert_status(200);
        assert!(!reply.body["watermark"].is_null(), "{}", reply.text);
        Self {
            tally: Tally {
                total: reply.number("total"),
                free: reply.number("free"),
                in_flight: reply.number("in_flight"),
                parked: reply.number("parked"),
                awaiting_payment: reply.number("awaiting_payment"),
                paid: reply.number("paid"),
            },
            holds: reply.body["holds"].as_bool().expect("holds is a boolean"),
        }
    }
}

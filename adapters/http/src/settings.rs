//! What the edge allows.

use std::num::NonZeroU32;
use std::time::Duration;

/// Which routes there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Surface {
    /// The whole API, its document and its pages.
    #[default]
    Everything,
    /// Health and metrics; whatever else is asked for is 404.
    Operations,
}

/// Limits of the HTTP edge. [`HttpSettings::default`] is what the documentation promises.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Which routes there are.
    pub surface: Surface,
    /// Longest request body in bytes, but for those that describe a voucher; beyond it 413.
    pub body_bytes_max: usize,
    /// Longest request body that describes a voucher, in bytes; beyond it 413. Its texts may be
    /// 2,200 characters together, however they are written: 12 bytes each at most.
    pub long_body_bytes_max: usize,
    /// How long a request body may take to arrive; beyond it 408.
    pub body_timeout: Duration,
    /// How long a request may take; beyond it 503. A command goes on in the background.
    pub request_deadline: Duration,
    /// How long the head of a request may take to arrive once it has begun, and the first one of a
    /// connection at all; beyond it 408 if something of it came, and the connection is closed.
    pub header_timeout: Duration,
    /// How long a connection may be idle between requests; beyond it it is closed. Longer than what
    /// is usual for load balancers, who must be the first to close.
    pub idle_timeout: Duration,
    /// How long a client may leave an answer unread; beyond it the connection is closed.
    pub unread_timeout: Duration,
    /// Most connections; further ones wait in the listener's queue.
    pub connections_max: usize,
    /// Most requests worked on at once; beyond it 503.
    pub in_flight_max: usize,
    /// How far the timestamp of a payment notification may be from the time here; beyond it 401.
    pub notice_tolerance: Duration,
    /// Most event streams at once, each of which holds a connection, and never more than half of
    /// `connections_max`; beyond it 503.
    pub streams_max: usize,
    /// Most event streams of one buyer at once; beyond it 429.
    pub streams_per_buyer_max: usize,
    /// How often an event stream without news says that it is still there, and looks whether news
    /// was missed.
    pub stream_heartbeat: Duration,
    /// How long an event stream lasts: then the client comes again, with a token that still holds.
    pub stream_lasts: Duration,
    /// How long the door stays open after a stop was asked for, while clients are told.
    pub stop_notice: Duration,
    /// How long a stop waits for requests and commands that were begun.
    pub stop_patience: Duration,
    /// How often a buyer may call.
    pub rates: Rates,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            surface: Surface::Everything,
            body_bytes_max: 4_096,
            long_body_bytes_max: 32_768,
            body_timeout: Duration::from_secs(3),
            request_deadline: Duration::from_secs(5),
            header_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(75),
            unread_timeout: Duration::from_secs(15),
            connections_max: 10_000,
            in_flight_max: 4_096,
            notice_tolerance: Duration::from_mins(5),
            streams_max: 4_096,
            streams_per_buyer_max: 8,
            stream_heartbeat: Duration::from_secs(10),
            stream_lasts: Duration::from_mins(10),
            stop_notice: Duration::from_millis(250),
            stop_patience: Duration::from_secs(10),
            rates: Rates::default(),
        }
    }
}

/// Calls per second. Administrators are exempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Purchases of one buyer.
    pub purchases_per_s: NonZeroU32,
    /// Purchases of one buyer at once.
    pub purchases_burst: NonZeroU32,
    /// Other authenticated calls of one buyer, per second and at once.
    pub others_per_s: NonZeroU32,
    /// Calls of one address, per second and at once; off by default, because many buyers may share
    /// an address. An IPv6 address counts by its first 64 bits.
    pub per_address_per_s: Option<NonZeroU32>,
}

impl Default for Rates {
    fn default() -> Self {
        const fn rate(per_s: u32) -> NonZeroU32 {
            match NonZeroU32::new(per_s) {
                Some(rate) => rate,
                None => NonZeroU32::MIN,
            }
        }
        Self {
            purchases_per_s: rate(50),
            purchases_burst: rate(100),
            others_per_s: rate(200),
            per_address_per_s: None,
        }
    }
}

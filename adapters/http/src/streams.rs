//! How many event streams are open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use seckill_domain::BuyerId;

use crate::problem::Problem;
use crate::settings::HttpSettings;

/// Counts the event streams of this process. A stream holds a connection for minutes, and each
/// client may hold a few: neither may keep others from buying.
pub(crate) struct Streams {
    max: usize,
    per_buyer_max: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    all: usize,
    of: HashMap<BuyerId, usize>,
}

/// Counts a stream for as long as it is open.
pub(crate) struct OpenStream {
    streams: Arc<Streams>,
    buyer: BuyerId,
}

/// When a buyer with too many streams may try again.
const RETRY_AFTER_S: u64 = 5;

impl Streams {
    pub(crate) fn new(settings: &HttpSettings) -> Arc<Self> {
        Arc::new(Self {
            max: settings.streams_max.min(settings.connections_max / 2),
            per_buyer_max: settings.streams_per_buyer_max,
            open: Mutex::default(),
        })
    }

    pub(crate) fn open(self: &Arc<Self>, buyer: BuyerId) -> Result<OpenStream, Problem> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.all >= self.max {
            return Err(Problem::Overloaded);
        }
        let of_buyer = open.of.entry(buyer).or_default();
        if *of_buyer >= self.per_buyer_max {
            return Err(Problem::RateLimited {
                retry_after_s: RETRY_AFTER_S,
            });
        }
        *of_buyer += 1;
        open.all += 1;
        Ok(OpenStream {
            streams: self.clone(),
            buyer,
        })
    }

    pub(crate) fn count(&self) -> usize {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let open = &self.streams.open;
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all -= 1;
        if let Some(of_buyer) = open.of.get_mut(&self.buyer) {
            *of_buyer -= 1;
            if *of_buyer == 0 {
                open.of.remove(&self.buyer);
            }
        }
    }
}

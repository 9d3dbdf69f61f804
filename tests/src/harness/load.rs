//! Buyers who keep coming.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use seckill_domain::VoucherId;
use tokio::task::JoinSet;

use super::buyers::buyer;
use super::history::History;
use super::shop::Shop;

/// How long a buyer waits after an answer that was none, or a 503.
const PAUSE: Duration = Duration::from_millis(50);

/// A crowd that buys one unit after the other, each buyer once. Whoever is left without an answer,
/// or told to come back, tries again like a person would, until the crowd is told to stop.
#[derive(Debug)]
pub struct Load {
    state: Arc<State>,
    buyers: JoinSet<()>,
}

#[derive(Debug)]
struct State {
    shops: Mutex<Vec<Shop>>,
    history: Arc<History>,
    stopping: AtomicBool,
}

impl Load {
    /// `at_once` buyers at a time come to these processes in turn, and what they are told goes into
    /// `history`.
    pub fn start(
        shops: &[Shop],
        history: &Arc<History>,
        voucher: VoucherId,
        at_once: usize,
    ) -> Self {
        let state = Arc::new(State {
            shops: Mutex::default(),
            history: Arc::clone(history),
            stopping: AtomicBool::new(false),
        });
        state.aim_at(shops);
        let mut buyers = JoinSet::new();
        for number in 0..at_once {
            buyers.spawn(Arc::clone(&state).buy(voucher, number));
        }
        Self { state, buyers }
    }

    /// From now on they come to these processes.
    pub fn aim_at(&self, shops: &[Shop]) {
        self.state.aim_at(shops);
    }

    /// How many orders they were told are granted.
    pub fn granted(&self) -> usize {
        self.state.history.granted().len()
    }

    /// Nobody else comes; returns when everybody has his answer.
    pub async fn stop(mut self) {
        self.state.stopping.store(true, Ordering::Relaxed);
        while let Some(ended) = self.buyers.join_next().await {
            ended.expect("a buyer does not panic");
        }
    }
}

impl State {
    fn aim_at(&self, shops: &[Shop]) {
        let shops = shops.iter().map(|shop| shop.clone().writing(&self.history));
        *self.shops.lock().unwrap_or_else(PoisonError::into_inner) = shops.collect();
    }

    fn shop(&self, turn: usize) -> Shop {
        let shops = self.shops.lock().unwrap_or_else(PoisonError::into_inner);
        shops[turn % shops.len()].clone()
    }

    async fn buy(self: Arc<Self>, voucher: VoucherId, mut turn: usize) {
        let mut who = buyer();
        while !self.stopping.load(Ordering::Relaxed) {
            let answer = self.shop(turn).try_buy(voucher, who, 1, None).await;
            turn += 1;
            match answer {
                Ok(answer) if !matches!(answer.code(), "unavailable" | "overloaded") => {
                    who = buyer();
                }
                Ok(_) | Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

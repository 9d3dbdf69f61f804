//! Buyers who keep coming.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use seckill_domain::{BuyerId, OrderId, VoucherId};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::answer::{Purchase, Reply};
use super::buyers::buyer;
use super::call::{Call, Lost};
use super::errand::{Demand, Errand, Visit};
use super::history::History;
use super::provider::Notice;
use super::shop::Shop;

/// How long a buyer waits after an answer that was none, or a 503.
const PAUSE: Duration = Duration::from_millis(50);

/// How long the next buyer takes to come: without it a fast machine sells everything before the
/// fault that the crowd is there for.
const PACE: Duration = Duration::from_millis(25);

/// How long somebody thinks about his order, and between two looks at it: he does not keep the next
/// buyer from coming.
const THINKS_FOR: Duration = Duration::from_millis(300);

/// So many pay or give up at a time: they are there to be seen, and the database of a busy machine has
/// the crowd's orders to write.
const AT_THE_DESK: usize = 3;

/// How long those who have come may go on with what they came for, once nobody else comes.
const GOES_ON_FOR: Duration = Duration::from_secs(8);

/// A crowd that buys, each buyer once, and does with it what people do. Whoever is left without an
/// answer, or told to come back, tries again like a person would, until the crowd is told to stop.
#[derive(Debug)]
pub struct Load {
    state: Arc<State>,
    buyers: JoinSet<()>,
}

#[derive(Debug)]
struct State {
    shops: Mutex<Vec<Shop>>,
    history: Arc<History>,
    demand: Demand,
    /// How many have come.
    arrivals: AtomicUsize,
    is_calm: AtomicBool,
    desk: Semaphore,
    /// Since when nobody else comes.
    stopped: OnceLock<Instant>,
}

impl Load {
    /// `at_once` buyers at a time come to these processes in turn, for one unit each and nothing
    /// else, and what they are told goes into `history`.
    pub fn start(
        shops: &[Shop],
        history: &Arc<History>,
        voucher: VoucherId,
        at_once: usize,
    ) -> Self {
        Self::of(shops, history, Demand::of(voucher), at_once)
    }

    /// The same, of a crowd that wants something else.
    pub fn of(shops: &[Shop], history: &Arc<History>, demand: Demand, at_once: usize) -> Self {
        let state = Arc::new(State {
            shops: Mutex::default(),
            history: Arc::clone(history),
            demand,
            arrivals: AtomicUsize::new(0),
            is_calm: AtomicBool::new(false),
            desk: Semaphore::new(AT_THE_DESK),
            stopped: OnceLock::new(),
        });
        state.aim_at(shops);
        let mut buyers = JoinSet::new();
        for number in 0..at_once {
            buyers.spawn(Arc::clone(&state).come(number));
        }
        Self { state, buyers }
    }

    /// From now on they come to these processes.
    pub fn aim_at(&self, shops: &[Shop]) {
        self.state.aim_at(shops);
    }

    /// While it is calm, whoever comes takes one unit of what there is plenty of, and goes. Nobody
    /// else does anything: nobody joins a line, pays, gives up, or asks again.
    pub fn calm(&self, is_calm: bool) {
        self.state.is_calm.store(is_calm, Relaxed);
    }

    /// How many orders they were told are granted.
    pub fn granted(&self) -> usize {
        self.state.history.granted().len()
    }

    /// Nobody else comes; returns when everybody has his answer.
    pub async fn stop(mut self) {
        self.state.stopped.get_or_init(Instant::now);
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

    fn nobody_comes(&self) -> bool {
        self.stopped.get().is_some()
    }

    fn is_over(&self) -> bool {
        let stopped = self.stopped.get();
        stopped.is_some_and(|since| since.elapsed() > GOES_ON_FOR)
    }

    fn is_calm(&self) -> bool {
        self.is_calm.load(Relaxed)
    }

    /// One buyer after the other; what they do after they have bought keeps nobody.
    async fn come(self: Arc<Self>, mut turn: usize) {
        let mut afterwards = JoinSet::new();
        while !self.nobody_comes() {
            let who = buyer();
            let visit = if self.is_calm() {
                self.demand.calm_visit()
            } else {
                self.demand.visit(self.arrivals.fetch_add(1, Relaxed))
            };
            if let Some(answer) = self.insist(&visit, who, &mut turn).await {
                if visit.errand != Errand::Keep {
                    afterwards.spawn(Arc::clone(&self).then(visit, who, answer, turn));
                }
                tokio::time::sleep(PACE).await;
            }
            while let Some(ended) = afterwards.try_join_next() {
                ended.expect("a buyer does not panic");
            }
        }
        while let Some(ended) = afterwards.join_next().await {
            ended.expect("a buyer does not panic");
        }
    }

    /// Asks until there is an answer, or the crowd goes home, or nobody is to ask for this.
    async fn insist(&self, visit: &Visit, who: BuyerId, turn: &mut usize) -> Option<Purchase> {
        let may_ask = || !(self.nobody_comes() || visit.is_scarce && self.is_calm());
        while may_ask() {
            let answer = self.ask(visit, who, turn).await;
            if answer.is_some() {
                return answer;
            }
            tokio::time::sleep(PAUSE).await;
        }
        None
    }

    /// Asks once; an answer to come back later is none.
    async fn ask(&self, visit: &Visit, who: BuyerId, turn: &mut usize) -> Option<Purchase> {
        let shop = self.shop(*turn);
        *turn += 1;
        let key = visit.key.as_deref();
        let answer = shop.try_buy(visit.voucher, who, visit.quantity, key).await;
        let is_later = |told: &Purchase| matches!(told.code(), "unavailable" | "overloaded");
        answer.ok().filter(|told| !is_later(told))
    }

    /// What he came for, once he has his answer.
    async fn then(self: Arc<Self>, visit: Visit, who: BuyerId, answer: Purchase, turn: usize) {
        let Some(order) = answer.order() else {
            return;
        };
        let waits = matches!(answer, Purchase::Waitlisted { .. });
        match visit.errand {
            Errand::Leave if waits => {
                let leave = async |shop: Shop| shop.try_leave(visit.voucher, who).await;
                return self.until_told(turn, leave).await;
            }
            Errand::Repeat => return self.repeat(&visit, who, turn).await,
            _ if waits && !self.is_served(order, who, turn).await => return,
            _ => {}
        }
        match visit.errand {
            Errand::Keep | Errand::Repeat => {}
            Errand::Pay => {
                let pay = async |shop: Shop| shop.try_pay(order, who, "p-1").await;
                self.until_told(turn, pay).await;
            }
            Errand::Transfer => {
                let notice = Notice::of(order, "t-1");
                let hear = async |shop: Shop| shop.try_hear(&notice).await;
                self.until_told(turn, hear).await;
            }
            Errand::Cancel | Errand::CancelAndRepeat | Errand::Leave => {
                let cancel = async |shop: Shop| shop.try_cancel(order, who).await;
                self.until_told(turn, cancel).await;
            }
        }
        if visit.errand == Errand::CancelAndRepeat {
            self.repeat(&visit, who, turn).await;
        }
    }

    /// Asks again, once it is not calm any more, until there is an answer.
    async fn repeat(&self, visit: &Visit, who: BuyerId, mut turn: usize) {
        while !self.is_over() {
            if !self.is_calm() && self.ask(visit, who, &mut turn).await.is_some() {
                return;
            }
            tokio::time::sleep(THINKS_FOR).await;
        }
    }

    /// Whether his turn has come, and the ledger knows, before the crowd goes home. Sooner it would be a
    /// place that he gives up, which Redis may lose.
    async fn is_served(&self, order: OrderId, who: BuyerId, turn: usize) -> bool {
        while !self.nobody_comes() {
            tokio::time::sleep(THINKS_FOR).await;
            // Not written down: what he sees meanwhile is what he is told when he acts.
            let look = Call::get(format!("/v1/orders/{order}")).by(who);
            if !self.is_calm()
                && let Ok(seen) = self.shop(turn).send(look).await
                && seen.status == 200
                && !matches!(seen.word("status"), "waiting" | "queued")
            {
                return true;
            }
        }
        false
    }

    /// Asks until it is settled, or the crowd goes home. An order may be on its way still, or known
    /// to another process alone.
    async fn until_told<F>(&self, mut turn: usize, ask: impl Fn(Shop) -> F)
    where
        F: Future<Output = Result<Reply, Lost>>,
    {
        while !self.is_over() {
            tokio::time::sleep(THINKS_FOR).await;
            if self.is_calm() {
                continue;
            }
            let turn_at_the_desk = self.desk.acquire().await;
            let answer = ask(self.shop(turn)).await;
            drop(turn_at_the_desk);
            turn += 1;
            let later = |reply: &Reply| {
                let on_its_way = matches!(reply.code(), "order_queued" | "order_not_found");
                on_its_way || matches!(reply.status, 408 | 429 | 503)
            };
            if answer.is_ok_and(|reply| !later(&reply)) {
                return;
            }
        }
    }
}

//! The way from a process to a store, and what can go wrong on it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures::future::BoxFuture;
use seckill_application::Fault;
use seckill_application::ports::Clock as _;
use seckill_memory::VirtualClock;

use crate::coverage::{Coverage, Seen};
use crate::dice::Dice;
use crate::executor::{Group, Spawner, WORLD};
use crate::note;
use crate::trace::Trace;

/// Where a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Store {
    /// The hot store.
    Hot,
    /// The ledger.
    Ledger,
    /// The payment provider.
    Provider,
}

/// The state of every way.
#[derive(Default)]
pub struct Weather {
    /// Calls in a thousand whose request gets lost.
    lost_requests: AtomicU32,
    /// Calls in a thousand whose answer gets lost.
    lost_answers: AtomicU32,
    /// Calls in a thousand that take long.
    slow: AtomicU32,
    down: Mutex<BTreeSet<Store>>,
    cut: Mutex<BTreeSet<(Group, Store)>>,
    /// Who stands still, and for how long, as soon as he has a batch in hand.
    asleep: Mutex<BTreeMap<Group, Duration>>,
}

impl Weather {
    /// How many calls in a thousand suffer.
    pub fn set(&self, lost_requests: u32, lost_answers: u32, slow: u32) {
        self.lost_requests.store(lost_requests, Ordering::Relaxed);
        self.lost_answers.store(lost_answers, Ordering::Relaxed);
        self.slow.store(slow, Ordering::Relaxed);
    }

    /// Switches a store off, or on again.
    pub fn down(&self, store: Store, down: bool) {
        let mut all = lock(&self.down);
        if down {
            all.insert(store);
        } else {
            all.remove(&store);
        }
    }

    /// Cuts a process off from a store, or ends that.
    pub fn cut(&self, process: Group, store: Store, cut: bool) {
        let mut all = lock(&self.cut);
        if cut {
            all.insert((process, store));
        } else {
            all.remove(&(process, store));
        }
    }

    /// Has a process stand still for a while when it next has a batch for the ledger in hand.
    pub fn stall_with_batch(&self, process: Group, pause: Duration) {
        lock(&self.asleep).insert(process, pause);
    }

    /// Everything works.
    pub fn heal(&self) {
        self.set(0, 0, 0);
        lock(&self.asleep).clear();
        lock(&self.down).clear();
        lock(&self.cut).clear();
    }

    fn passes(&self, process: Group, store: Store) -> bool {
        !lock(&self.down).contains(&store) && !lock(&self.cut).contains(&(process, store))
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all runs share.
#[derive(Clone)]
pub struct Nature {
    /// Time.
    pub clock: Arc<VirtualClock>,
    /// Chance.
    pub dice: Arc<Dice>,
    /// Tasks.
    pub spawner: Spawner,
    /// The state of every way.
    pub weather: Arc<Weather>,
    /// What is written down.
    pub trace: Arc<Trace>,
    /// What has been seen to happen.
    pub coverage: Arc<Coverage>,
    /// Whether units may have moved since somebody looked.
    pub touched: Arc<AtomicBool>,
}

/// The way from one life of a process to one store.
pub struct Link {
    /// Everything else.
    pub nature: Nature,
    /// Whose way it is.
    pub process: Group,
    /// Where to.
    pub store: Store,
}

/// A call once more, kept for later.
pub type Late = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// How a call went that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The answer came.
    Answered,
    /// The answer got lost.
    AnswerLost,
}

impl Link {
    /// Makes a call.
    pub async fn call<T>(
        &self,
        name: &'static str,
        call: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        self.watched(name, None, call, |_, _| {}).await
    }

    /// Makes a call, and shows `watch` what was answered and whether that got through. `late` is
    /// the same call again, for a request that arrives when nobody waits for its answer any more.
    pub async fn watched<T>(
        &self,
        name: &'static str,
        late: Option<Late>,
        call: impl Future<Output = Result<T, Fault>>,
        watch: impl FnOnce(&T, Way),
    ) -> Result<T, Fault> {
        self.send(name, late).await?;
        let answer = call.await;
        let lost = self.loses_answer(name);
        let way = if lost { Way::AnswerLost } else { Way::Answered };
        if let Ok(answer) = &answer {
            watch(answer, way);
        }
        self.nature.touches(name);
        self.note(
            name,
            match (&answer, way) {
                (Err(_), _) => "refused",
                (Ok(_), Way::Answered) => "ok",
                (Ok(_), Way::AnswerLost) => "answer lost",
            },
        );
        if lost {
            self.nature.coverage.saw(Seen::AnswerLost);
            self.nature.clock.sleep(self.timeout()).await;
            return Err(Fault::unknown(name, "the answer got lost"));
        }
        self.travel().await;
        answer
    }

    /// Takes a request to its store, or fails on the way.
    async fn send(&self, name: &'static str, late: Option<Late>) -> Result<(), Fault> {
        self.stall(name).await;
        self.travel().await;
        let Nature { dice, weather, .. } = &self.nature;
        if !weather.passes(self.process, self.store) {
            if dice.chance(500) {
                self.pause(dice.millis(1..=20)).await;
                self.note(name, "unreachable");
                return Err(Fault::unavailable(name, "unreachable"));
            }
            self.pause(self.timeout()).await;
            self.note(name, "no answer");
            return Err(Fault::unknown(name, "no answer"));
        }
        if dice.chance(weather.lost_requests.load(Ordering::Relaxed)) {
            self.nature.coverage.saw(Seen::RequestLost);
            self.note(name, "request lost");
            self.deliver_late(name, late);
            self.pause(self.timeout()).await;
            return Err(Fault::unknown(name, "the request got lost"));
        }
        Ok(())
    }

    /// Stands still with a batch in hand, if that is to be: the process, and not only this call.
    async fn stall(&self, name: &'static str) {
        let Nature {
            spawner, weather, ..
        } = &self.nature;
        if name != APPLY {
            return;
        }
        let Some(pause) = lock(&weather.asleep).remove(&self.process) else {
            return;
        };
        self.note(name, "stands still");
        self.nature.coverage.saw(Seen::StallWithBatch);
        spawner.pause(self.process);
        let (nature, process) = (self.nature.clone(), self.process);
        self.nature.spawn(async move {
            nature.sleep(pause).await;
            nature.spawner.resume(process);
        });
        others_first().await;
    }

    /// What seems to be lost may only be slow, and outlive even the process that sent it.
    fn deliver_late(&self, name: &'static str, late: Option<Late>) {
        let Some(late) = late.filter(|_| self.nature.dice.chance(500)) else {
            return;
        };
        let delay = self.nature.dice.millis(1..=3_000);
        let (nature, process, store) = (self.nature.clone(), self.process, self.store);
        self.nature.spawn(async move {
            nature.sleep(delay).await;
            if nature.weather.passes(process, store) {
                nature.coverage.saw(Seen::LateRequest);
                note!(nature.trace, "p{} {name} carried out late", process.0);
                late().await;
                nature.touches(name);
            }
        });
    }

    /// What decides or commits something loses its answers more often: that is where it matters.
    fn loses_answer(&self, name: &str) -> bool {
        let Nature { dice, weather, .. } = &self.nature;
        let often = if DECIDES.contains(&name) { 6 } else { 1 };
        !weather.passes(self.process, self.store)
            || dice.chance(often * weather.lost_answers.load(Ordering::Relaxed))
    }

    fn timeout(&self) -> Duration {
        self.nature.dice.millis(20..=300)
    }

    /// Between two machines: mostly a moment, now and then long.
    async fn travel(&self) {
        let Nature { dice, weather, .. } = &self.nature;
        if dice.chance(weather.slow.load(Ordering::Relaxed)) {
            self.pause(dice.millis(5..=400)).await;
        } else if dice.chance(200) {
            self.pause(dice.millis(1..=3)).await;
        } else {
            others_first().await;
        }
    }

    async fn pause(&self, pause: Duration) {
        self.nature.clock.sleep(pause).await;
    }

    fn note(&self, name: &'static str, how: &str) {
        note!(self.nature.trace, "p{} {name} {how}", self.process.0);
    }
}

/// Lets everybody else go on first, if chance will have it so.
pub async fn others_first() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

const APPLY: &str = "admission_ledger.apply";

/// Calls whose answers get lost most.
const DECIDES: [&str; 3] = ["purchase_gate.admit", APPLY, "unit_of_work.commit"];

/// Calls after which units may be somewhere else.
const MOVES: [&str; 16] = [
    "purchase_gate.admit",
    "purchase_gate.follow",
    "purchase_gate.promote",
    "purchase_gate.leave",
    "purchase_gate.withdraw",
    "purchase_gate.retire",
    "gate_loader.begin_epoch",
    "gate_loader.append_again",
    "gate_loader.open",
    "gate_loader.offer",
    "admission_ledger.apply",
    "gate_updates.forget",
    "parked_messages.replay",
    "parked_messages.discard",
    "reconciliations.repair",
    "unit_of_work.commit",
];

impl Nature {
    fn touches(&self, name: &str) {
        if MOVES.contains(&name) {
            self.touched.store(true, Ordering::Relaxed);
        }
    }

    /// A task of the world outside.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.spawner.spawn(WORLD, work);
    }

    /// Waits.
    pub async fn sleep(&self, pause: Duration) {
        self.clock.sleep(pause).await;
    }
}

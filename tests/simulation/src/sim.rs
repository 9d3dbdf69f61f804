//! One run.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seckill_application::ports::Clock as _;
use seckill_domain::Timestamp;
use seckill_domain::invariants::InvariantId;
use seckill_memory::VirtualClock;

use crate::bug::Bug;
use crate::buyers::Buyer;
use crate::coverage::Coverage;
use crate::dice::Dice;
use crate::executor::{Executor, Spawner};
use crate::judge::{Judge, Rule, Violation};
use crate::link::{Nature, Weather};
use crate::misfortune::{self, Kind, UNDO_DEPTH};
use crate::note;
use crate::sales;
use crate::site::Site;
use crate::stores::Stores;
use crate::trace::Trace;

/// When every run begins.
const START: Timestamp = Timestamp::from_millis(1_796_000_000_000);
/// How long a round may take to come to rest after everything works again.
const REST_WITHIN: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What a run was asked to be.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// What chance follows from.
    pub seed: u64,
    /// The bug that is planted, if any.
    pub bug: Option<Bug>,
    /// Whether the trace goes to standard output.
    pub prints: bool,
}

/// What came of a run.
pub struct Outcome {
    /// What does not hold, if anything.
    pub violation: Option<Violation>,
    /// The trace in one number, and its lines.
    pub trace: (u64, u64),
    /// What has happened.
    pub coverage: Arc<Coverage>,
    /// Polls of tasks.
    pub steps: u64,
    /// How much time went by.
    pub time: Duration,
}

impl Run {
    /// Only a seed.
    pub fn of(seed: u64) -> Self {
        Self {
            seed,
            bug: None,
            prints: false,
        }
    }

    /// Runs it.
    pub fn go(self) -> Outcome {
        let clock = Arc::new(VirtualClock::new(START));
        let nature = Nature {
            dice: Arc::new(Dice::new(self.seed)),
            spawner: Spawner::default(),
            weather: Arc::new(Weather::default()),
            trace: Arc::new(Trace::new(clock.clone(), self.prints)),
            coverage: Arc::default(),
            touched: Arc::default(),
            clock,
        };
        let mut executor = Executor::new(nature.spawner.clone());
        let ran = catch_unwind(AssertUnwindSafe(|| self.rounds(&nature, &mut executor)));
        let violation = match ran {
            Ok(held) => held.err(),
            Err(panic) => Some(panicked(&*panic)),
        };
        executor.end();
        if let Some(violation) = &violation {
            note!(nature.trace, "VIOLATION {violation}");
        }
        Outcome {
            violation,
            trace: nature.trace.sum(),
            coverage: nature.coverage.clone(),
            steps: executor.steps,
            time: nature.clock.monotonic(),
        }
    }

    fn rounds(self, nature: &Nature, executor: &mut Executor) -> Result<(), Violation> {
        let dice = &nature.dice;
        let lot = misfortune::lot(dice);
        note!(nature.trace, "--- seed {}, {lot:?}", self.seed);
        let undo_depth = if lot.contains(&Kind::Failover) {
            UNDO_DEPTH
        } else {
            0
        };
        let stores = Arc::new(Stores::new(&nature.clock, undo_depth, self.bug));
        let site = Site::new(
            nature.clone(),
            stores,
            dice.below(3) + 1,
            dice.within(3..=16),
        );
        let judge = Arc::new(Judge::new(site.clone()));
        for process in 0..site.count() {
            site.start(process);
        }
        if undo_depth > 0 {
            nature.spawn(site.clone().count_writes());
        }
        for _ in 0..dice.count(1..=2) {
            nature.spawn(sales::publish(site.clone()));
        }
        let mut stage = Stage {
            nature,
            executor,
            judge: &judge,
        };
        stage.come_to_rest()?;
        let mut buyers: Vec<Buyer> = site
            .buyers()
            .map(|id| Buyer::new(site.clone(), id))
            .collect();
        for round in 1..=2 {
            note!(nature.trace, "--- round {round}");
            let within = dice.millis(6_000..=18_000);
            let crowd = Crowd::begin(&site, buyers, within);
            let blows = misfortune::strike(site.clone(), judge.clone(), lot.clone(), within);
            nature.spawn(blows);
            stage.pass(within)?;
            misfortune::heal(&site);
            buyers = stage.gather(&crowd)?;
            stage.come_to_rest()?;
        }
        for node in site.nodes() {
            site.count_meters(&node);
        }
        Ok(())
    }
}

/// Everybody who does something in a round.
struct Crowd {
    count: usize,
    done: Arc<Mutex<Vec<Buyer>>>,
}

impl Crowd {
    fn begin(site: &Arc<Site>, buyers: Vec<Buyer>, within: Duration) -> Self {
        let crowd = Self {
            count: buyers.len(),
            done: Arc::default(),
        };
        for mut buyer in buyers {
            let done = crowd.done.clone();
            site.nature.spawn(async move {
                buyer.act(within).await;
                done.lock().expect("no panic").push(buyer);
            });
        }
        site.nature.spawn(sales::administer(site.clone(), within));
        crowd
    }

    /// Everybody, once all have finished.
    fn take(&self) -> Option<Vec<Buyer>> {
        let mut done = self.done.lock().expect("no panic");
        (done.len() == self.count).then(|| std::mem::take(&mut *done))
    }
}

/// Where a run takes place.
struct Stage<'a> {
    nature: &'a Nature,
    executor: &'a mut Executor,
    judge: &'a Judge,
}

impl Stage<'_> {
    /// Lets time go by.
    fn pass(&mut self, time: Duration) -> Result<(), Violation> {
        let Nature { clock, dice, .. } = self.nature;
        let until = clock.monotonic() + time;
        self.executor.run(clock, dice, until, || self.judge.quiet())
    }

    /// Waits until everybody in a crowd has finished.
    fn gather(&mut self, crowd: &Crowd) -> Result<Vec<Buyer>, Violation> {
        let mut looks = 0;
        loop {
            if let Some(mut buyers) = crowd.take() {
                buyers.sort_unstable_by_key(Buyer::id);
                return Ok(buyers);
            }
            if looks > 4 * 60 {
                return stuck("somebody waits for ever for an answer");
            }
            looks += 1;
            self.pass(LOOK_EVERY)?;
        }
    }

    /// Waits until all is at rest, and judges.
    fn come_to_rest(&mut self) -> Result<(), Violation> {
        let late = self.nature.clock.monotonic() + REST_WITHIN;
        loop {
            self.pass(LOOK_EVERY)?;
            match self.judge.unrest() {
                Ok(()) => {
                    note!(self.nature.trace, "--- at rest");
                    return self.judge.at_rest();
                }
                Err(unrest) if self.nature.clock.monotonic() >= late => return Err(unrest),
                Err(_) => {}
            }
        }
    }
}

fn stuck<T>(how: &str) -> Result<T, Violation> {
    Err(Violation {
        rule: Rule::Promise(InvariantId::Drains),
        how: how.to_owned(),
    })
}

fn panicked(panic: &(dyn Any + Send)) -> Violation {
    let words = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    Violation {
        rule: Rule::NoPanic,
        how: words.unwrap_or("something panicked").to_owned(),
    }
}

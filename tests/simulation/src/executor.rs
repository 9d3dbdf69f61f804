//! One thread, many tasks: of those that can go on, chance picks the next.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use seckill_application::ports::Clock as _;
use seckill_memory::VirtualClock;

use crate::dice::Dice;

/// Tasks that live and die together: one life of a process, or the world outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(pub u32);

/// Buyers, administrators, the network and misfortune.
pub const WORLD: Group = Group(0);

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts tasks, and ends, pauses and resumes groups of them. Clones are handles on one executor.
#[derive(Clone, Default)]
pub struct Spawner {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    /// Tasks that can go on, each once.
    ready: Vec<usize>,
    queued: BTreeSet<usize>,
    born: Vec<(Group, Work)>,
    killed: Vec<Group>,
    paused: BTreeSet<Group>,
}

struct Task {
    group: Group,
    work: Work,
    waker: Waker,
}

struct Waking {
    id: usize,
    shared: Arc<Mutex<Shared>>,
}

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.queued.insert(self.id) {
            shared.ready.push(self.id);
        }
    }
}

impl Spawner {
    /// Starts a task.
    pub fn spawn(&self, group: Group, work: impl Future<Output = ()> + Send + 'static) {
        self.shared().born.push((group, Box::pin(work)));
    }

    /// Drops every task of a group, where it is.
    pub fn kill(&self, group: Group) {
        let mut shared = self.shared();
        shared.born.retain(|(of, _)| *of != group);
        shared.killed.push(group);
    }

    /// Lets no task of a group go on for now.
    pub fn pause(&self, group: Group) {
        self.shared().paused.insert(group);
    }

    /// Lets the tasks of a group go on.
    pub fn resume(&self, group: Group) {
        self.shared().paused.remove(&group);
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drives the tasks of a [`Spawner`].
pub struct Executor {
    spawner: Spawner,
    tasks: BTreeMap<usize, Task>,
    last: usize,
    /// Polls so far.
    pub steps: u64,
}

impl Executor {
    /// With no task yet.
    pub fn new(spawner: Spawner) -> Self {
        Self {
            spawner,
            tasks: BTreeMap::new(),
            last: 0,
            steps: 0,
        }
    }

    /// Drives tasks until the clock shows `until` on its monotonic side, moving it on whenever
    /// nobody can go on. `quiet` looks around at every such moment, and may end the run.
    pub fn run<E>(
        &mut self,
        clock: &VirtualClock,
        dice: &Dice,
        until: Duration,
        mut quiet: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            self.take_changes();
            if let Some(id) = self.pick(dice) {
                self.poll(id);
                continue;
            }
            quiet()?;
            let left = until.saturating_sub(clock.monotonic());
            if left.is_zero() {
                return Ok(());
            }
            clock.advance(clock.next_wake_in().map_or(left, |next| next.min(left)));
        }
    }

    /// Drops every task.
    pub fn end(&mut self) {
        self.take_changes();
        while let Some((_, task)) = self.tasks.pop_first() {
            drop(task);
        }
    }

    fn take_changes(&mut self) {
        let (born, killed) = {
            let mut shared = self.spawner.shared();
            let killed = std::mem::take(&mut shared.killed);
            (std::mem::take(&mut shared.born), killed)
        };
        for group in killed {
            let ids: Vec<usize> = self.of_group(group);
            // Outside of the lock: what is dropped may wake others.
            for id in ids {
                drop(self.tasks.remove(&id));
            }
        }
        for (group, work) in born {
            self.last += 1;
            let id = self.last;
            let waking = Waking {
                id,
                shared: self.spawner.shared.clone(),
            };
            let waker = Waker::from(Arc::new(waking));
            waker.wake_by_ref();
            self.tasks.insert(id, Task { group, work, waker });
        }
    }

    fn of_group(&self, group: Group) -> Vec<usize> {
        let ours = self.tasks.iter().filter(|(_, task)| task.group == group);
        ours.map(|(id, _)| *id).collect()
    }

    /// One of the tasks that can go on.
    fn pick(&self, dice: &Dice) -> Option<usize> {
        let mut shared = self.spawner.shared();
        let Shared {
            ready,
            queued,
            paused,
            ..
        } = &mut *shared;
        ready.retain(|id| {
            let lives = self.tasks.contains_key(id);
            if !lives {
                queued.remove(id);
            }
            lives
        });
        let at = if paused.is_empty() {
            (!ready.is_empty()).then(|| dice.below(ready.len()))?
        } else {
            let runs = |at: &usize| !paused.contains(&self.tasks[&ready[*at]].group);
            let running: Vec<usize> = (0..ready.len()).filter(runs).collect();
            (!running.is_empty()).then(|| running[dice.below(running.len())])?
        };
        let id = ready.swap_remove(at);
        queued.remove(&id);
        Some(id)
    }

    fn poll(&mut self, id: usize) {
        self.steps += 1;
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        let mut context = Context::from_waker(&task.waker);
        if task.work.as_mut().poll(&mut context).is_ready() {
            drop(self.tasks.remove(&id));
        }
    }
}

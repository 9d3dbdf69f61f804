//! Faults on demand.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use seckill_application::Fault;

/// The switchboard of one store: which of its next calls fail, and how.
///
/// Calls are named as their faults are, `port.method` (`purchase_gate.admit`). A plan names one
/// call, a whole port (`purchase_gate`), or every call (`*`).
#[derive(Debug, Default)]
pub struct Chaos {
    /// Whether there is any plan at all, so that a healthy store pays for one load only.
    armed: AtomicBool,
    plan: Mutex<Plan>,
    struck: AtomicU64,
}

#[derive(Debug, Default)]
struct Plan {
    down: bool,
    strikes: Vec<Strike>,
}

#[derive(Debug)]
struct Strike {
    calls: String,
    moment: Moment,
    left: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Before,
    After,
}

/// A call under way; says whether its answer gets lost.
#[derive(Debug)]
#[must_use]
pub(crate) struct Call {
    name: &'static str,
    answer_is_lost: bool,
}

impl Chaos {
    /// The next `times` of these calls fail before anything happens: effect `None`.
    pub fn fail_before(&self, calls: &str, times: u64) {
        self.plan_strike(calls, Moment::Before, times);
    }

    /// The next `times` of these calls are carried out and their answers lost: effect `Unknown`.
    pub fn fail_after(&self, calls: &str, times: u64) {
        self.plan_strike(calls, Moment::After, times);
    }

    /// While `down`, every call fails before anything happens.
    pub fn down(&self, down: bool) {
        let mut plan = self.plan();
        plan.down = down;
        self.rearm(&plan);
    }

    /// Forgets every plan.
    pub fn heal(&self) {
        let mut plan = self.plan();
        *plan = Plan::default();
        self.rearm(&plan);
    }

    /// How many calls have been made to fail so far: a test that relies on a fault asserts that it
    /// struck.
    pub fn struck(&self) -> u64 {
        self.struck.load(Ordering::Relaxed)
    }

    fn plan_strike(&self, calls: &str, moment: Moment, left: u64) {
        let mut plan = self.plan();
        plan.strikes.push(Strike {
            calls: calls.to_owned(),
            moment,
            left,
        });
        self.rearm(&plan);
    }

    /// Begins a call. A planned failure before it ends it here.
    pub(crate) fn enter(&self, name: &'static str) -> Result<Call, Fault> {
        let mut call = Call {
            name,
            answer_is_lost: false,
        };
        if !self.armed.load(Ordering::Acquire) {
            return Ok(call);
        }
        let mut plan = self.plan();
        if plan.down {
            self.struck.fetch_add(1, Ordering::Relaxed);
            return Err(Fault::unavailable(name, "switched off"));
        }
        let Some(at) = plan.strikes.iter().position(|strike| strike.hits(name)) else {
            return Ok(call);
        };
        self.struck.fetch_add(1, Ordering::Relaxed);
        let moment = plan.strikes[at].moment;
        plan.strikes[at].left -= 1;
        plan.strikes.retain(|strike| strike.left > 0);
        self.rearm(&plan);
        if moment == Moment::Before {
            return Err(Fault::unavailable(name, "made to fail before the call"));
        }
        call.answer_is_lost = true;
        Ok(call)
    }

    /// Fails if the store went down while a call waited.
    pub(crate) fn still_up(&self, name: &'static str) -> Result<(), Fault> {
        if self.armed.load(Ordering::Acquire) && self.plan().down {
            self.struck.fetch_add(1, Ordering::Relaxed);
            return Err(Fault::unavailable(name, "switched off while it waited"));
        }
        Ok(())
    }

    fn rearm(&self, plan: &Plan) {
        let armed = plan.down || !plan.strikes.is_empty();
        self.armed.store(armed, Ordering::Release);
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Strike {
    fn hits(&self, name: &str) -> bool {
        let port = name.split_once('.').map_or(name, |(port, _)| port);
        self.left > 0 && (self.calls == "*" || self.calls == name || self.calls == port)
    }
}

impl Call {
    /// Ends a call that was carried out.
    pub(crate) fn answer<T>(self, answer: T) -> Result<T, Fault> {
        if self.answer_is_lost {
            return Err(Fault::unknown(self.name, "made to lose its answer"));
        }
        Ok(answer)
    }
}

/// Refuses a call that asks for more than its port allows.
pub(crate) fn at_most(name: &'static str, asked: usize, max: usize) -> Result<(), Fault> {
    if asked > max {
        return Err(Fault::broken(
            name,
            format!("{asked} at once, at most {max} are allowed"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use seckill_application::Effect;

    use super::*;

    fn outcome(chaos: &Chaos, name: &'static str) -> Option<Effect> {
        let answer = chaos.enter(name).and_then(|call| call.answer(()));
        answer.err().map(|fault| fault.effect())
    }

    #[test]
    fn a_plan_strikes_the_calls_it_names_as_often_as_it_says() {
        let chaos = Chaos::default();
        chaos.fail_before("leases.renew", 1);
        chaos.fail_after("purchase_gate", 2);
        assert_eq!(outcome(&chaos, "leases.acquire"), None);
        assert_eq!(outcome(&chaos, "leases.renew"), Some(Effect::None));
        assert_eq!(outcome(&chaos, "leases.renew"), None);
        assert_eq!(
            outcome(&chaos, "purchase_gate.admit"),
            Some(Effect::Unknown)
        );
        assert_eq!(
            outcome(&chaos, "purchase_gate.leave"),
            Some(Effect::Unknown)
        );
        assert_eq!(outcome(&chaos, "purchase_gate.admit"), None);
        assert_eq!(chaos.struck(), 3);
    }

    #[test]
    fn a_store_that_is_down_refuses_everything_until_it_is_up() {
        let chaos = Chaos::default();
        chaos.down(true);
        assert_eq!(outcome(&chaos, "ledger.ping"), Some(Effect::None));
        chaos.down(false);
        assert_eq!(outcome(&chaos, "ledger.ping"), None);
    }
}

//! What goes wrong.

mod blow;

use std::sync::Arc;
use std::time::Duration;

use seckill_application::ports::Clock as _;

use crate::dice::Dice;
use crate::judge::Judge;
use crate::note;
use crate::site::Site;
use blow::Blow;

/// Writes that a failover can lose at most.
pub const UNDO_DEPTH: usize = 64;
/// A kind of misfortune.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Requests and answers get lost, or take long.
    Storm,
    /// A process is killed, and started again later.
    Crash,
    /// A process stands still for a while.
    Stall,
    /// The hot store is emptied.
    Wipe,
    /// The hot store loses its latest writes.
    Failover,
    /// The hot store loses one key.
    KeyLost,
    /// The gate forgets a sale, and nothing of what was decided: an eviction.
    Unload,
    /// The hot store is away.
    HotOutage,
    /// The ledger is away.
    LedgerOutage,
    /// A process cannot reach a store.
    Cut,
    /// A clock is wrong.
    Clock,
    /// Something stands in a stream that is not ours.
    Garbage,
    /// A decision stands in a stream that the ledger cannot apply.
    Forgery,
    /// The message of a grant cannot be read, but for what it decided.
    Spoilt,
    /// A message is removed from a stream.
    MessageGone,
    /// The gate forgets a holder.
    HolderGone,
    /// The gate misses a release.
    ReleaseMissed,
    /// The gate's free stock is off.
    FreeOff,
    /// The delay queue is emptied.
    DelaysLost,
}

const ALL: [Kind; 19] = [
    Kind::Storm,
    Kind::Crash,
    Kind::Stall,
    Kind::Wipe,
    Kind::Failover,
    Kind::KeyLost,
    Kind::Unload,
    Kind::HotOutage,
    Kind::LedgerOutage,
    Kind::Cut,
    Kind::Clock,
    Kind::Garbage,
    Kind::Forgery,
    Kind::Spoilt,
    Kind::MessageGone,
    Kind::HolderGone,
    Kind::ReleaseMissed,
    Kind::FreeOff,
    Kind::DelaysLost,
];

/// The kinds that a run has to live with. Few at a time, so that each has room to do harm.
pub fn lot(dice: &Dice) -> Vec<Kind> {
    if dice.chance(80) {
        return Vec::new();
    }
    let share = dice.count(100..=450);
    let mut lot: Vec<Kind> = ALL.into_iter().filter(|_| dice.chance(share)).collect();
    if lot.contains(&Kind::Failover) {
        // Numbers are given twice after a failover; what tells the two apart is the message itself.
        lot.retain(|kind| !matches!(kind, Kind::MessageGone | Kind::Spoilt));
    }
    if lot.contains(&Kind::Spoilt) {
        // Of two entries in a row that are gone or cannot be read, nobody knows which number is whose.
        lot.retain(|kind| !matches!(kind, Kind::Garbage | Kind::MessageGone));
    }
    lot
}

/// Strikes now and then within a time.
pub async fn strike(site: Arc<Site>, judge: Arc<Judge>, lot: Vec<Kind>, within: Duration) {
    let dice = site.nature.dice.clone();
    let end = site.nature.clock.monotonic() + within;
    let times = dice.count(1..=6);
    // Waiting for a worthy moment takes time as well.
    let within = within.saturating_sub(Duration::from_millis(1_500) * times);
    let millis = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
    for _ in 0..times {
        let pause = dice.millis(0..=millis / u64::from(times));
        site.nature.sleep(pause).await;
        if dice.chance(600) {
            until_busy(&site).await;
        }
        if site.nature.clock.monotonic() >= end {
            return;
        }
        if let Some(kind) = dice.pick(&lot) {
            let blow = Blow {
                site: site.clone(),
                judge: judge.clone(),
            };
            blow.strike(*kind);
        }
    }
}

/// Waits a moment for decisions that the ledger does not have: what strikes then does more harm.
async fn until_busy(site: &Site) {
    for _ in 0..1_500 {
        if site.stores.is_busy() {
            return;
        }
        site.nature.sleep(Duration::from_millis(1)).await;
    }
}

/// Everything works again.
pub fn heal(site: &Site) {
    note!(site.nature.trace, "--- everything works again");
    site.nature.weather.heal();
    site.stores.hot_clock.set_off(0);
    for node in site.nodes() {
        node.local_clock.set_off(0);
        site.nature.spawner.resume(node.group);
    }
    for process in 0..site.count() {
        site.start(process);
    }
}

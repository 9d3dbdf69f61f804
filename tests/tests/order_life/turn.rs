//! One process reconciles at a time, and gives its turn back.

use futures::join;
use seckill_application::ReconcileScope;
use seckill_application::ports::Clock as _;

use crate::world::{MS, Offer, World};

const EVERY_MINUTE: ReconcileScope = ReconcileScope {
    full: false,
    dry_run: false,
};

/// A process that stops does not wait for order writers, which stop as well.
#[test]
fn who_is_told_to_stop_gives_the_turn_back() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    world.granted(voucher, 1, 1);
    let reconcile = world.reconcile("process-1");
    let begun = world.clock.monotonic();
    // Nobody writes the grant down, so the second look would be waited for.
    let told = world.clock.sleep(2_000 * MS);
    let given_up = world.alone(reconcile.run_until(EVERY_MINUTE, told));
    assert_eq!(given_up.unwrap(), None);
    let waited = world.clock.monotonic().checked_sub(begun).unwrap();
    assert_eq!(waited, 2_000 * MS);
    world.settle();
    let other = world.reconcile("process-2");
    let report = world.run(other.run(EVERY_MINUTE)).unwrap();
    assert_eq!(report.expect("the turn is free").vouchers.len(), 1);
}

#[test]
fn one_instance_reconciles_at_a_time_and_every_round_is_kept() {
    let world = World::new();
    world.sale(Offer::of(10));
    let (one, two) = (world.reconcile("process-1"), world.reconcile("process-2"));
    let both = async { join!(one.run(EVERY_MINUTE), two.run(EVERY_MINUTE)) };
    let (first, second) = world.run(both);
    let first = first.unwrap().expect("it was the first");
    assert_eq!(second.unwrap(), None);
    let later = world
        .run(two.run(EVERY_MINUTE))
        .unwrap()
        .expect("free again");
    let kept = world.alone(one.reports(None, 10)).unwrap();
    assert_eq!(kept.items, [later, first]);
}

//! What a process asks the ledger about the answers that it remembers.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use seckill_application::ports::LOAD_CHUNK_MAX;
use seckill_application::{Meters, RememberedAnswers, WantedSales};
use seckill_domain::{BuyerId, Claim, OrderId, Partitions, Timestamp, VoucherId};
use seckill_memory::{HotPathOptions, MemoryHotPath, MemoryLedger, VirtualClock};
use seckill_tests::controls::{Cut, Fuse, Stores, interrupted};

/// Two, so that vouchers of even and of odd numbers are apart.
const PARTITIONS: Partitions = Partitions::new(NonZeroU16::new(2).expect("not zero"));
/// Old enough to be asked after, and not to be offered.
const A_MOMENT: Duration = Duration::from_millis(400);

/// A process that stops where the fuse says, with so many answers of each of these vouchers, which
/// the ledger does not have.
fn process(fuse: &Arc<Fuse>, answers: &[(u64, usize)]) -> RememberedAnswers {
    let clock = Arc::new(VirtualClock::new(Timestamp::from_millis(0)));
    let store = MemoryHotPath::new(HotPathOptions::new(PARTITIONS), clock.clone());
    let book = MemoryLedger::new(clock.clone(), PARTITIONS);
    let stores = Stores {
        hot: store.ports(),
        ledger: book.ports(),
        clock: clock.clone(),
    };
    let stores = interrupted(&stores, fuse);
    let remembered = RememberedAnswers::new(
        &stores.hot,
        &stores.ledger,
        clock.clone(),
        Arc::new(WantedSales::default()),
        Arc::new(Meters::default()),
        PARTITIONS,
    );
    let mut numbers = 1..;
    for (voucher, count) in answers {
        for number in numbers.by_ref().take(*count) {
            remembered.remember_grant(Claim {
                order: OrderId::new(number),
                voucher: VoucherId::new(*voucher),
                buyer: BuyerId::new(number),
                quantity: 1,
                key: None,
            });
        }
    }
    clock.advance(A_MOMENT);
    remembered
}

/// The call at which the process stopped, if it made so many.
fn settled(answers: &[(u64, usize)], calls: usize) -> Option<&'static str> {
    let fuse = Arc::new(Fuse::at(Cut::Before(calls)));
    let remembered = process(&fuse, answers);
    let done = block_on(fuse.run(remembered.settle()));
    assert_eq!(done.is_some(), fuse.stopped_at().is_none());
    fuse.stopped_at()
}

#[test]
fn a_ledger_that_is_behind_is_asked_once_of_a_partition() {
    let answers = [(2, 5 * LOAD_CHUNK_MAX)];
    assert_eq!(settled(&answers, 0), Some("ledger.stages"), "it is asked");
    assert_eq!(settled(&answers, 1), None, "and no second time");
}

#[test]
fn one_partition_that_is_behind_hides_no_other() {
    let answers = [(2, 3 * LOAD_CHUNK_MAX), (3, 3 * LOAD_CHUNK_MAX)];
    assert_eq!(settled(&answers, 1), Some("ledger.stages"), "each of both");
    assert_eq!(settled(&answers, 2), None, "once");
}

//! What the in-memory gate and every simulation do most: decide about one attempt.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use seckill_domain::{
    Attempt, BuyerId, GateVersion, OrderId, Sale, SaleStatus, SaleTerms, Ticket, Timestamp,
    VoucherId,
};

const HOLDERS: u64 = 100_000;

fn sale(total_units: u32, waitlist_capacity: u32) -> Sale {
    let terms = SaleTerms {
        status: SaleStatus::Published,
        opens_at: Timestamp::from_millis(0),
        closes_at: Timestamp::from_millis(i64::MAX),
        per_buyer_limit: 1,
        waitlist_capacity,
        total_units,
    };
    Sale::new(VoucherId::new(1), terms, total_units, GateVersion::new(1))
}

fn attempt(number: u64) -> Attempt {
    Attempt {
        order: OrderId::new(number),
        buyer: BuyerId::new(number),
        quantity: 1,
        key: None,
    }
}

fn admit(sale: &mut Sale, number: u64) {
    let now = Timestamp::from_millis(1);
    black_box(sale.admit(&attempt(number), now, Ticket::new(number)));
}

/// A sale that this many buyers have been to.
fn after(buyers: u64, units: u32, waitlist_capacity: u32) -> Sale {
    let mut sale = sale(units, waitlist_capacity);
    (1..=buyers).for_each(|number| admit(&mut sale, number));
    sale
}

fn benchmarks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("Sale::admit");
    group.measurement_time(Duration::from_secs(3));
    // 1,000 new buyers at a time, so that the sale is about as full at the end as at the start.
    let mut thousand = |name: &str, made: Sale| {
        group.bench_function(name, |bencher| {
            let make = || made.clone();
            let run = |mut sale: Sale| {
                (HOLDERS + 1..=HOLDERS + 1_000).for_each(|number| admit(&mut sale, number));
                sale
            };
            bencher.iter_batched(make, run, BatchSize::LargeInput);
        });
    };
    thousand("1000 granted of many", after(HOLDERS, u32::MAX, 0));
    thousand("1000 join a long list", after(HOLDERS, 1, u32::MAX));
    thousand("1000 after sell-out", after(HOLDERS, 1, 0));

    let mut sale = after(HOLDERS, u32::MAX, 0);
    group.bench_function("a repeat", |bencher| {
        bencher.iter(|| admit(&mut sale, HOLDERS / 2));
    });
    group.finish();
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);

//! What is read for every order: the gate's reply to a batch, and the entry on the stream.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use redis::Value;
use seckill_domain::{Attempt, BuyerId, Epoch, OrderId};
use seckill_redis::wire;

// Nobody outside of the crate may read replies, so they are compiled in here.
#[path = "../src/reply.rs"]
mod reply;

#[expect(dead_code, reason = "the adapter uses the rest")]
#[path = "../src/gate_answers.rs"]
mod gate_answers;

/// As large as Snowflakes are.
const FIRST_ORDER: u64 = 609_848_294_759_202_817;
const FIRST_BUYER: u64 = 1_000_000_001;
const BATCHES: [u64; 3] = [1, 32, 64];

/// Fields of an entry with so many grants.
fn entry(grants: u64) -> [Vec<u8>; 8] {
    let lines = (0..grants).map(|at| {
        let (order, buyer) = (FIRST_ORDER + at, FIRST_BUYER + at);
        format!("granted 12 {order} {buyer} 1 -")
    });
    let decisions = lines.collect::<Vec<_>>().join("\n");
    ["v", "1", "e", "3", "s", "1000", "d", decisions.as_str()].map(|it| it.as_bytes().to_vec())
}

fn attempts(count: u64) -> Vec<Attempt> {
    let attempt = |at| Attempt {
        order: OrderId::new(FIRST_ORDER + at),
        buyer: BuyerId::new(FIRST_BUYER + at),
        quantity: 1,
        key: None,
    };
    (0..count).map(attempt).collect()
}

/// The reply that grants them all.
fn granted(count: u64) -> Value {
    let text = |text: String| Value::BulkString(text.into_bytes());
    let head = ["DECIDED", "50000", "0", "0", "7"].map(|word| text(word.to_owned()));
    let answers = (0..count).map(|at| text(format!("granted {}", FIRST_ORDER + at)));
    Value::Array(head.into_iter().chain(answers).collect())
}

fn benchmarks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("entry of the stream");
    group.measurement_time(Duration::from_secs(3));
    for count in BATCHES {
        let fields = entry(count);
        group.throughput(Throughput::Elements(count));
        group.bench_function(format!("{count} grants"), |bencher| {
            bencher.iter(|| wire::decode_entry(Epoch::new(3), black_box(&fields)));
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("reply of the gate");
    group.measurement_time(Duration::from_secs(3));
    for count in BATCHES {
        let (attempts, value) = (attempts(count), granted(count));
        group.throughput(Throughput::Elements(count));
        group.bench_function(format!("{count} grants"), |bencher| {
            bencher.iter_batched(
                || value.clone(),
                |value| {
                    let reply = reply::Reply::read("bench", value);
                    reply.and_then(|reply| gate_answers::admitted(&reply, &attempts))
                },
                criterion::BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);

//! What a bearer token costs: the first time, and again.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use jsonwebtoken::{EncodingKey, Header, encode};
use seckill_domain::Timestamp;

// Nobody outside of the crate may verify a token, so that is compiled in here.
#[expect(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::wrong_self_convention,
    reason = "the edge uses the rest, and it is public there"
)]
#[path = "../src/auth/mod.rs"]
mod auth;

use auth::TokenVerifier;

const SECRET: &[u8] = b"a secret of the benchmark, with more than 32 bytes";
const NOW_S: i64 = 1_800_000_000;

#[derive(serde::Serialize)]
struct Claims {
    sub: String,
    role: &'static str,
    iat: i64,
    exp: i64,
}

#[expect(
    clippy::unwrap_used,
    reason = "a benchmark stops at what it did not expect"
)]
fn token(user: u64) -> String {
    let claims = Claims {
        sub: user.to_string(),
        role: "buyer",
        iat: NOW_S,
        exp: NOW_S + 3_600,
    };
    encode(
        &Header::default(),
        &claims,
        &EncodingKey::from_secret(SECRET).unwrap(),
    )
    .unwrap()
}

#[expect(
    clippy::unwrap_used,
    reason = "a benchmark stops at what it did not expect"
)]
fn benchmarks(criterion: &mut Criterion) {
    let now = Timestamp::from_millis(NOW_S * 1_000);
    let mut group = criterion.benchmark_group("token");
    group.measurement_time(Duration::from_secs(3));
    let verifier = TokenVerifier::hs256(SECRET).unwrap();
    let mut user = 1_000_000_000;
    group.bench_function("never seen", |bencher| {
        bencher.iter_batched(
            || {
                user += 1;
                token(user)
            },
            |token| verifier.verify(&token, now),
            BatchSize::SmallInput,
        );
    });
    let known = token(7);
    for _ in 0..2 {
        verifier.verify(&known, now).unwrap();
    }
    group.bench_function("seen before", |bencher| {
        bencher.iter(|| verifier.verify(black_box(&known), now));
    });
    group.finish();
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);

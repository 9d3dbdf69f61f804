//! Seeds of the models' lives that are lived by chance.

/// What `SECKILL_MODEL_SEED` says, or a new one each time; printed either way, so that what a life
/// has shown can be shown again.
pub(super) fn seed() -> u64 {
    let given = std::env::var("SECKILL_MODEL_SEED").ok();
    let seed = given.map_or_else(rand::random, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("SECKILL_MODEL_SEED is a number, not {text:?}"))
    });
    println!("again: SECKILL_MODEL_SEED={seed}");
    seed
}

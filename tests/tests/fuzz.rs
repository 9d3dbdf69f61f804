//! The targets of `fuzz/`, on what is known to be of interest and on mutations of it: with any
//! compiler, in seconds. `scripts/fuzz.sh` searches further.

use std::panic::catch_unwind;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use seckill_http::fuzzing as http;
use seckill_redis::fuzzing as redis;

/// Repeats the run with this seed.
const SEED: &str = "SECKILL_TEST_FUZZ_SEED";
const RUNS: usize = 20_000;
const BYTES_MAX: usize = 1_024;

fn fuzz(target: &str, run: fn(&[u8])) {
    let given = std::env::var(SEED).ok();
    let seed: u64 = given.map_or_else(rand::random, |seed| seed.parse().expect("a number"));
    println!("{target}: {SEED}={seed}");
    let corpus = corpus(target);
    for known in &corpus {
        run(known);
    }
    let mut dice = StdRng::seed_from_u64(seed);
    for number in 0..RUNS {
        let input = mutated(&mut dice, &corpus);
        if catch_unwind(|| run(&input)).is_err() {
            let shown = String::from_utf8_lossy(&input);
            panic!("{target}, seed {seed}, run {number}: {shown:?} = {input:?}");
        }
    }
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let files = std::fs::read_dir(folder.join(target)).expect("a corpus");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    let read = |path| std::fs::read(path).expect("it can be read");
    let corpus: Vec<_> = paths.into_iter().map(read).collect();
    assert!(!corpus.is_empty());
    corpus
}

/// One of the corpus, changed in a few places.
fn mutated(dice: &mut StdRng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut input = corpus[dice.random_range(0..corpus.len())].clone();
    for _ in 0..dice.random_range(1..=6) {
        let at = dice.random_range(0..=input.len());
        let to = dice.random_range(at..=input.len().min(at + 16));
        match dice.random_range(0..6) {
            0 => input.truncate(at),
            1 => drop(input.drain(at..to)),
            2 => input.insert(at, dice.random()),
            3 => input[at..to].reverse(),
            4 => {
                let other = &corpus[dice.random_range(0..corpus.len())];
                let from = dice.random_range(0..=other.len());
                let end = dice.random_range(from..=other.len());
                input.splice(at..to, other[from..end].iter().copied());
            }
            _ => {
                let numbers = [
                    "0",
                    "-1",
                    "00",
                    "18446744073709551615",
                    "18446744073709551616",
                    "1e9",
                ];
                let number = numbers[dice.random_range(0..numbers.len())];
                input.splice(at..to, number.bytes());
            }
        }
    }
    input.truncate(BYTES_MAX);
    input
}

macro_rules! targets {
    ($($target:ident: $run:path),+ $(,)?) => {
        $(#[test]
        fn $target() {
            fuzz(stringify!($target), $run);
        })+

        #[test]
        fn every_corpus_has_a_target() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
            let names = std::fs::read_dir(folder).expect("the corpora");
            let mut names: Vec<_> = names
                .map(|name| name.expect("a folder").file_name().into_string().expect("a name"))
                .collect();
            names.sort();
            let mut targets = vec![$(stringify!($target)),+];
            targets.sort_unstable();
            assert_eq!(names, targets);
        }
    };
}

targets! {
    entry: redis::entry,
    reply: redis::reply,
    token: http::token,
    page: http::page,
}

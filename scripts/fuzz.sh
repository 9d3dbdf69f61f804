#!/usr/bin/env bash
# Fuzzes the decoders of what others write: entries of the stream, answers of
# the scripts, tokens, queries. Needs a C++ compiler, and no other tool.
#
#   scripts/fuzz.sh [SECONDS] [TARGET]...    (default: 60 seconds for each)
#
# `cargo test -p seckill-tests --test fuzz` runs the same targets on what is in
# fuzz/corpus and on mutations of it, without the compiler's help.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
case $seconds in *[!0-9]*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
shift || true
[ $# -gt 0 ] || set -- entry reply token page

scripts/setup.sh build
host=$(rustc -vV | sed -n 's/^host: //p')
output=${CARGO_TARGET_DIR:-target}/fuzz
mkdir -p "$output"
output=$(cd "$output" && pwd)
# What the fuzzer follows: which branches an input takes.
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
CARGO_TARGET_DIR=$output cargo build --quiet --release --target "$host" --package seckill-fuzz
status=0
for target in "$@"; do
    mkdir -p "$output/corpus/$target" "$output/found/$target"
    echo "== $target"
    "$output/$host/release/$target" -max_total_time="$seconds" -max_len=4096 -timeout=5 \
        -print_final_stats=1 -artifact_prefix="$output/found/$target/" \
        "$output/corpus/$target" "fuzz/corpus/$target" 2>&1 | tail -n 12 || status=1
done
exit "$status"

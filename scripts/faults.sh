#!/usr/bin/env bash
# Drives the fault matrix (docs/reliability.md) and prints what became of each row.
#
#   scripts/faults.sh             the rows of tests/tests/faults, and those that other tests drive
#   scripts/faults.sh --long      the same in their full sizes: about an hour, mostly of waiting
#
# Further arguments go to the test binary of the rows: `scripts/faults.sh f05`.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = --long ]; then
    shift
    export SECKILL_TEST_AWAY_S=60 SECKILL_TEST_LOAD_S=600 SECKILL_TEST_PAIRS=100000
fi
export SECKILL_TEST_STACK=${SECKILL_TEST_STACK:-local}
folder=${CARGO_TARGET_DIR:-target}/test-report
rm -rf "$folder/fault-rows"
# Its tests mostly wait.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((3 * $(nproc)))}
scripts/setup.sh build servers faults

status=0
cargo test -p seckill-tests --test faults -- "$@" </dev/null || status=$?

# The rows that are driven elsewhere, by target and name, as the matrix has them.
others() { grep -o '"[a-z_]*::[a-z0-9_:]*"' tests/src/matrix/required.rs | tr -d '"' | grep -v '^faults::' | sort -u; }
if [ $# -eq 0 ]; then
    for target in $(others | cut -d: -f1 | sort -u); do
        mapfile -t names < <(others | sed -n "s/^$target:://p" | sed '/::servers::/!s/.*:://')
        cargo test -p seckill-tests --test "$target" -- "${names[@]}" </dev/null || status=$?
    done
fi

echo
cat "$folder/faults.md"
exit "$status"

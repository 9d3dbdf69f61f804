#!/usr/bin/env bash
# Runs all tests. On a fresh Debian machine with Rust it installs what is
# missing (as root, or through sudo) and starts a Docker daemon if none answers.
#
#   scripts/test.sh             everything
#   scripts/test.sh --suites    only what runs on real servers: contracts, acceptance, punctual and repairs
#   scripts/test.sh --contracts only contracts, acceptance and punctual
#
# SECKILL_TEST_STACK=local|containers|memory chooses the servers. Without it, and
# without SECKILL_TEST_REDIS_URL and SECKILL_TEST_MYSQL_URL, they are local ones.
# Further arguments go to cargo test.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "test: $*" >&2; }

suites=()
case "${1:-}" in
--suites) suites=(stack contract_mysql contract_redis acceptance punctual repairs) ;;
--contracts) suites=(stack contract_mysql contract_redis acceptance punctual) ;;
esac
[ ${#suites[@]} -eq 0 ] || shift

if [ -n "${SECKILL_TEST_REDIS_URL:-}" ]; then
    stack=given
else
    stack=${SECKILL_TEST_STACK:-local}
    export SECKILL_TEST_STACK=$stack
fi

# Tests that kill servers use local ones whatever the others use.
scripts/setup.sh build servers faults
if [ "$stack" = containers ]; then
    scripts/setup.sh docker
    scripts/docker.sh
elif [ "$stack" = local ] && ! { scripts/setup.sh docker && scripts/docker.sh; }; then
    say "=================================================================="
    say "NO DOCKER on this machine: the tests of the container stack do NOT run."
    say "=================================================================="
fi

selection=(--workspace)
if [ ${#suites[@]} -gt 0 ]; then
    selection=(--package seckill-tests)
    for name in "${suites[@]}"; do selection+=(--test "$name"); done
fi

output=${CARGO_TARGET_DIR:-target}/test-report
mkdir -p "$output"
output=$(cd "$output" && pwd)
export SECKILL_TEST_REPORT=$output/$stack.tsv
rm -f "$SECKILL_TEST_REPORT"
touch "$SECKILL_TEST_REPORT"

# Most tests wait for servers, payment windows and leases: more of them than cores at a time.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((3 * $(nproc)))}

status=0
cargo test "${selection[@]}" --no-fail-fast "$@" </dev/null 2>&1 | tee "$output/$stack.log" || status=$?

# tests_on STACK: how many tests ran there.
tests_on() { awk -F'\t' -v stack="$1" '$1 == stack { n++ } END { print n + 0 }' "$SECKILL_TEST_REPORT"; }

echo
echo "Tests that ran on a stack, by the versions the servers report:"
cut -f 1,2 "$SECKILL_TEST_REPORT" | sort | uniq -c | sed 's/\t/: /'
required=("$stack")
[ ${#suites[@]} -gt 0 ] || required+=(memory)
# A selection by name, as in `scripts/test.sh some_test`, need not touch every stack.
[ $# -eq 0 ] || required=()
for name in "${required[@]}"; do
    if [ "$(tests_on "$name")" = 0 ]; then
        say "NO TEST ran on the stack '$name'"
        [ "$status" != 0 ] || status=1
    fi
done

awk '/^test result: / { for (i = 2; i <= NF; i++) {
        if ($i == "passed;") passed += $(i - 1)
        if ($i == "failed;") failed += $(i - 1)
        if ($i == "ignored;") ignored += $(i - 1) } }
    END { printf "%d passed, %d failed%s\n", passed, failed, ignored ? ", " ignored " ignored" : ""
        exit passed == 0 }' "$output/$stack.log" || status=1
exit "$status"

#!/usr/bin/env bash
# The API under fire: its document under a linter, thousands of requests made
# from the document, right and wrong, alone and in sequences, by an
# administrator, a buyer and somebody who is neither, and a client generated
# from the document that buys a voucher. One JSON verdict at the end.
#
#   scripts/fire.sh [--seed N] [--examples N] [--real]
#
#   --seed N       what chance follows from (a new one each time, and printed)
#   --examples N   requests per operation and phase (default 10)
#   --real         on a real Redis and a real database (as the tests have them:
#                  SECKILL_TEST_STACK, local if not set), not in memory
#
# It passes only if so many requests were answered that something was tried, and
# each operation was called and has succeeded. Needs python3 with venv and npm;
# what it downloads and writes is in target/fire.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly LINTER='@redocly/cli@2.77.0'
readonly HERE=$PWD/scripts/fire
# Fewer are a sign that most of the document was passed over.
readonly REQUESTS_MIN=1000
seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
examples=10
real=
while [ $# -gt 0 ]; do
    case $1 in
        --seed) seed=$2 && shift ;;
        --examples) examples=$2 && shift ;;
        --real) real=--real ;;
        *)
            sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
            exit 2
            ;;
    esac
    shift
done
work=${CARGO_TARGET_DIR:-target}/fire
mkdir -p "$work"
work=$(cd "$work" && pwd)

say() { echo "fire: $*" >&2; }

tools() {
    local wanted
    wanted=$(cat "$HERE/requirements.txt" && echo "$LINTER")
    if [ "$(cat "$work/tools" 2>/dev/null)" != "$wanted" ]; then
        rm -rf "$work/venv" "$work/npm"
        python3 -m venv "$work/venv"
        "$work/venv/bin/pip" install --quiet --disable-pip-version-check -r "$HERE/requirements.txt"
        npm install --silent --no-audit --no-fund --no-save --prefix "$work/npm" "$LINTER"
        echo "$wanted" >"$work/tools"
    fi
    PATH=$work/venv/bin:$work/npm/node_modules/.bin:$PATH
    export REDOCLY_TELEMETRY=off PYTHONDONTWRITEBYTECODE=1
}

server=
finish() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
    # What keeps the stores ends with its input.
    exec 9>&-
}
trap finish EXIT

# line PROCESS FILE PATTERN: waits for the first line that fits, for a minute.
line() {
    local found
    for _ in $(seq 600); do
        found=$(sed -n "$3" "$2" | head -n 1)
        [ -z "$found" ] || { echo "$found" && return 0; }
        kill -0 "$1" 2>/dev/null || break
        sleep 0.1
    done
    tail "$2" >&2
    return 1
}

stores() {
    [ -n "${SECKILL_TEST_REDIS_URL:-}" ] || export SECKILL_TEST_STACK=${SECKILL_TEST_STACK:-local}
    cargo build --quiet -p seckill-tests --bin seckill-stores
    rm -f "$work/input" && mkfifo "$work/input"
    : >"$work/stores.log"
    "${CARGO_TARGET_DIR:-target}/debug/seckill-stores" <"$work/input" >"$work/stores.log" 2>&1 &
    exec 9>"$work/input"
    line $! "$work/stores.log" '/^SECKILL_NAMESPACE=/p' >/dev/null
    local name value
    while IFS='=' read -r name value; do
        export "$name=$value"
    done < <(grep '^SECKILL_' "$work/stores.log")
}

serve() {
    # Limits are tested elsewhere: here they would hide what is behind them.
    export SECKILL_AUTH_SECRET=a-secret-for-the-time-of-one-run-under-fire
    export SECKILL_PAYMENTS_SECRET=another-secret-for-the-time-of-one-run-under-fire
    : >"$work/server.log"
    "$binary" serve --listen 127.0.0.1:0 --rate-others 1000000 --stream-lasts-s 1 --no-demo \
        >"$work/server.log" 2>&1 &
    server=$!
    base=$(line "$server" "$work/server.log" 's/.*serving.*address=\([0-9.:]*\).*/http:\/\/\1/p')
}

lint() {
    "$binary" openapi >"$work/openapi.json"
    redocly lint "$work/openapi.json" --config "$HERE/redocly.yaml" --format summary >&2
}

# requests WHO EXAMPLES [ARGUMENT]...
requests() {
    local who=$1 count=$2
    shift 2
    (cd "$HERE" && SCHEMATHESIS_HOOKS=hooks schemathesis --config-file schemathesis.toml \
        run "$base/openapi.json" --max-examples "$count" --seed "$seed" --no-color "$@") \
        >"$work/$who.log" 2>&1 || { cat "$work/$who.log" >&2 && return 1; }
}

bearing() { echo "Authorization: Bearer $1"; }
admin() { requests admin "$examples" --header "$(bearing "$("$binary" token --user 1 --role admin)")"; }
buyer() { requests buyer "$(((examples + 1) / 2))" --header "$(bearing "$("$binary" token --user 4242)")"; }
# Everything that asks for a token is refused in the same way: few requests show it.
nobody() { requests nobody 1 --phases examples,coverage; }
impostor() { requests impostor 1 --phases examples,coverage --header "$(bearing not.a.token)"; }

client() {
    rm -rf "$work/client"
    openapi-python-client generate --path "$work/openapi.json" --output-path "$work/client" \
        --config "$HERE/client.yaml" --meta none --fail-on-warning >&2
    PYTHONPATH=$work python3 "$HERE/buyer.py" "$base" \
        "$("$binary" token --user 1 --role admin)" "$("$binary" token --user 4242)"
}

# chains WHO: calls were made with what other calls had answered.
chains() {
    local count
    count=$(sed -n 's/^ *Scenarios: *\([0-9]*\) *$/\1/p' "$work/$1.log" | tail -n 1)
    [ "${count:-0}" -gt 0 ] || { say "no scenario of several calls ran as $1" && return 1; }
    say "$count scenarios of several calls as $1"
}

# Everything counted by the server itself.
tally() {
    # A loop that panics is started again, and nobody is answered otherwise. (Errors in the log are
    # also what the requests deserve, such as a payment that contradicts itself.)
    ! grep panicked "$work/server.log" >&2 || return 1
    chains admin && chains buyer || return 1
    python3 "$HERE/tally.py" "$work/openapi.json" "$base" "$REQUESTS_MIN" >"$work/tally"
}

begun=$SECONDS
say "seed $seed"
[ -n "${SECKILL_BIN:-}" ] || cargo build --quiet --bin seckill
binary=${SECKILL_BIN:-${CARGO_TARGET_DIR:-target}/debug/seckill}
tools
[ -z "$real" ] || stores
serve
verdict=pass
took=
for step in lint admin buyer nobody impostor client tally; do
    from=$SECONDS
    say "$step"
    if "$step"; then word=pass; else word=fail verdict=fail; fi
    took+="\"$step\":{\"verdict\":\"$word\",\"s\":$((SECONDS - from))},"
done
printf '{"verdict":"%s","seed":%s,"stores":"%s",%s"counted":%s,"total_s":%s}\n' "$verdict" "$seed" \
    "$([ -z "$real" ] && echo memory || echo real)" "$took" "$(cat "$work/tally" || echo null)" "$((SECONDS - begun))"
[ "$verdict" = pass ] || say "again: scripts/fire.sh --seed $seed --examples $examples $real"
[ "$verdict" = pass ]

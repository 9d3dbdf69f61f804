#!/usr/bin/env bash
# The API under fire: its document under a linter, thousands of requests made
# from the document, right and wrong, alone and in sequences, and a client
# generated from the document that buys a voucher. One JSON verdict at the end.
#
#   scripts/fire.sh [EXAMPLES]    requests per operation and phase (default 15)
#
# Against a server of its own in memory on a free port; with SECKILL_GATE and
# SECKILL_LEDGER in the environment, on these stores. Needs python3 with venv
# and npm; what it downloads and writes is in target/fire.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly LINTER='@redocly/cli@2.77.0'
readonly HERE=$PWD/scripts/fire
examples=${1:-15}
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
}
trap finish EXIT

serve() {
    # Limits are tested elsewhere: here they would hide what is behind them.
    export SECKILL_AUTH_SECRET=a-secret-for-the-time-of-one-run-under-fire
    export SECKILL_PAYMENTS_SECRET=another-secret-for-the-time-of-one-run-under-fire
    "$binary" serve --listen 127.0.0.1:0 --rate-others 1000000 --stream-lasts-s 1 --no-demo \
        >"$work/server.log" 2>&1 &
    server=$!
    for _ in $(seq 300); do
        base=$(sed -n 's/.*serving.*address=\([0-9.:]*\).*/http:\/\/\1/p' "$work/server.log")
        [ -z "$base" ] || return 0
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    tail "$work/server.log" >&2
    return 1
}

lint() {
    "$binary" openapi >"$work/openapi.json"
    redocly lint "$work/openapi.json" --config "$HERE/redocly.yaml" --format summary >&2
}

requests() {
    local admin
    admin=$("$binary" token --user 1 --role admin)
    (cd "$HERE" && SCHEMATHESIS_HOOKS=hooks schemathesis --config-file schemathesis.toml \
        run "$base/openapi.json" --header "Authorization: Bearer $admin" --max-examples "$examples" \
        --report ndjson --report-ndjson-path "$work/requests.ndjson" --no-color) \
        >"$work/requests.log" 2>&1 || { cat "$work/requests.log" >&2 && return 1; }
    # A loop that panics is started again, and nobody is answered otherwise. (Errors in the log are
    # also what the requests deserve, such as a payment that contradicts itself.)
    ! grep panicked "$work/server.log" >&2
}

client() {
    rm -rf "$work/client"
    openapi-python-client generate --path "$work/openapi.json" --output-path "$work/client" \
        --config "$HERE/client.yaml" --meta none --fail-on-warning >&2
    PYTHONPATH=$work python3 "$HERE/buyer.py" "$base" \
        "$("$binary" token --user 1 --role admin)" "$("$binary" token --user 4242)"
}

begun=$SECONDS
[ -n "${SECKILL_BIN:-}" ] || cargo build --quiet --bin seckill
binary=${SECKILL_BIN:-${CARGO_TARGET_DIR:-target}/debug/seckill}
tools
serve
verdict=pass
declare -A took
for step in lint requests client; do
    from=$SECONDS
    say "$step"
    if "$step"; then word=pass; else word=fail verdict=fail; fi
    took[$step]="\"$step\":{\"verdict\":\"$word\",\"s\":$((SECONDS - from))}"
done
cases=$(sed -n 's/^ *\([0-9]*\) generated.*/\1/p' "$work/requests.log")
printf '{"verdict":"%s","requests_made":%s,%s,%s,%s,"total_s":%s}\n' "$verdict" "${cases:-0}" \
    "${took[lint]}" "${took[requests]}" "${took[client]}" "$((SECONDS - begun))"
[ "$verdict" = pass ]

#!/usr/bin/env bash
# Makes sure that a Docker daemon answers and has the images of the tests.
#
#   scripts/docker.sh          start the daemon if none answers; pull or build the images
#   scripts/docker.sh stop     stop the daemon, if it was this script that started it
#
# The daemon's log and pid are in .cache/dockerd.*.
set -euo pipefail
cd "$(dirname "$0")/.."

log=.cache/dockerd.log
pid_file=.cache/dockerd.pid
say() { echo "docker: $*" >&2; }
answers() { docker version >/dev/null 2>&1; }

sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)

start_by_hand() { # start_by_hand OPTION...
    say "starting dockerd $*"
    # The caller's group may use the socket, or the tests would need root.
    "${sudo[@]}" bash -c 'setsid dockerd --pidfile "$1" --group "$2" "${@:4}" >"$3" 2>&1 </dev/null &' \
        start "$PWD/$pid_file" "$(id -g)" "$PWD/$log" "$@"
    local look
    for look in $(seq 1 120); do
        ! answers || return 0
        sleep 0.25
        # It writes its pid at once, and removes it when it gives up.
        [ "$look" -lt 8 ] || [ -e "$pid_file" ] || break
    done
    stop
    return 1
}

stop() {
    [ -s "$pid_file" ] || return 0
    local pid
    pid=$(cat "$pid_file")
    if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ]; then
        "${sudo[@]}" kill "$pid"
        while [ -e "/proc/$pid" ]; do sleep 0.25; done
    fi
    "${sudo[@]}" rm -f "$pid_file"
}

start() {
    ! answers || return 0
    if [ -n "${DOCKER_HOST:-}" ]; then
        say "nobody answers at DOCKER_HOST"
        return 1
    fi
    if [ -d /run/systemd/system ]; then
        "${sudo[@]}" systemctl start docker || true
        ! answers || return 0
    fi
    mkdir -p .cache
    # Plain if possible; else without an overlay file system, as inside of
    # another container; else without firewall rules, where ports are still
    # published on 127.0.0.1 by the daemon's own proxy.
    start_by_hand || start_by_hand --storage-driver=vfs || start_by_hand --storage-driver=vfs --iptables=false || {
        say "dockerd does not run on this machine; the end of its log:"
        tail -n 5 "$log" >&2
        return 1
    }
    say "started; '$0 stop' stops it"
}

images() {
    local image
    for image in "${SECKILL_TEST_REDIS_IMAGE:-redis:8}" "${SECKILL_TEST_MYSQL_IMAGE:-mysql:9}"; do
        docker image inspect "$image" >/dev/null 2>&1 && continue
        say "pulling $image"
        if ! timeout 300 docker pull --quiet "$image" >&2; then
            say "$image cannot be pulled; building it from Debian packages"
            bash tests/images/build.sh
        fi
    done
}

case ${1:-start} in
    start)
        start
        images
        ;;
    stop) stop ;;
    *)
        say "unknown command: $1"
        exit 2
        ;;
esac

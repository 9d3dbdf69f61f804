#!/usr/bin/env bash
# Installs what the tests need and this machine lacks, from Debian's packages;
# as root, or through sudo.
#
#   scripts/setup.sh [build] [servers] [faults] [docker] [lint] [fire]     (default: all)
set -euo pipefail

say() { echo "setup: $*" >&2; }
has() { PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null 2>&1; }

missing=()
want() { # want PACKAGE PROGRAM...: the package, unless one of the programs is there
    local package=$1 program
    shift
    for program in "$@"; do
        ! has "$program" || return 0
    done
    missing+=("$package")
}

[ $# -gt 0 ] || set -- build servers faults docker lint fire
for part in "$@"; do
    case $part in
        build) want build-essential cc ;;
        servers)
            want redis-server "${SECKILL_TEST_REDIS_BIN:-redis-server}" valkey-server
            want mariadb-server "${SECKILL_TEST_MYSQL_BIN:-mysqld}" mariadbd
            ;;
        # A clock that jumps is a library that is loaded into a process.
        faults) want faketime faketime ;;
        docker)
            want docker.io dockerd
            want docker-client docker
            ;;
        lint)
            want lua-check luacheck
            want lua5.1 luac5.1
            ;;
        # An environment of Python's own, and what a linter is installed with.
        fire)
            python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
            want npm npm
            ;;
        *)
            say "unknown part: $part"
            exit 2
            ;;
    esac
done

if ! has cargo; then
    say "no cargo: install Rust $(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml") or later from rustup.rs"
    exit 1
fi
[ ${#missing[@]} -gt 0 ] || exit 0

say "to be installed: ${missing[*]}"
if ! has apt-get; then
    say "no apt-get: install what corresponds to these packages of Debian: ${missing[*]}"
    exit 1
fi
sudo=()
if [ "$(id -u)" != 0 ]; then
    has sudo || { say "not root and no sudo: apt-get install ${missing[*]}" && exit 1; }
    sudo=(sudo)
fi
apt() { "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null >&2; }
apt update
# Docker's client is a package of its own in later releases, else a part of the engine's.
for i in "${!missing[@]}"; do
    [ "${missing[i]}" = docker-client ] || continue
    if apt-cache show docker-cli >/dev/null 2>&1; then missing[i]=docker-cli; else missing[i]=docker.io; fi
done
apt install -y --no-install-recommends "${missing[@]}"

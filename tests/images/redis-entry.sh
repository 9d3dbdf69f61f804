#!/bin/sh
# Entry point of the locally built Redis image. Like the official one it takes
# either options of the server or a command.
set -eu
mkdir -p /data
cd /data
case ${1:-} in
    "" | -*) set -- redis-server "$@" ;;
esac
# Whoever can reach the published port is trusted: it is a server for tests.
[ "$1" != redis-server ] || set -- "$@" --protected-mode no
exec "$@"

#!/bin/sh
# Entry point of the locally built MySQL image. It understands the settings of
# the official image that the tests use, so that either image can serve them:
#   MYSQL_ROOT_PASSWORD  password of root, from any address
#   MYSQL_DATABASE       a database to create
# Arguments are handed to the server.
set -eu

data=/var/lib/mysql
run=/run/mysqld
init=$run/init.sql
mkdir -p "$data" "$run"
chown mysql:mysql "$data" "$run"

# MariaDB's packages carry a mysqld too, so its own name is asked for first.
server=/usr/sbin/mariadbd
[ -x "$server" ] || server=/usr/sbin/mysqld

if [ ! -d "$data/mysql" ]; then
    case $server in
        */mysqld) "$server" --no-defaults --initialize-insecure --user=mysql \
            --datadir="$data" --secure-file-priv=NULL ;;
        *) mariadb-install-db --no-defaults --user=mysql --datadir="$data" \
            --auth-root-authentication-method=normal --skip-test-db >/dev/null ;;
    esac
fi

# The password is quoted for SQL; the server reads the file once, at its start.
password=$(printf %s "${MYSQL_ROOT_PASSWORD:?is required}" | sed "s/[\\\\']/\\\\&/g")
(
    umask 077
    {
        echo "CREATE USER IF NOT EXISTS 'root'@'%' IDENTIFIED BY '$password';"
        echo "ALTER USER 'root'@'%' IDENTIFIED BY '$password';"
        echo "GRANT ALL PRIVILEGES ON *.* TO 'root'@'%' WITH GRANT OPTION;"
        [ -z "${MYSQL_DATABASE:-}" ] || echo "CREATE DATABASE IF NOT EXISTS \`$MYSQL_DATABASE\`;"
    } >"$init"
)
chown mysql:mysql "$init"

if [ "$server" = /usr/sbin/mysqld ]; then
    set -- --mysqlx=OFF --secure-file-priv=NULL "$@"
fi
exec "$server" --no-defaults --user=mysql --datadir="$data" \
    --socket="$run/mysqld.sock" --pid-file="$run/mysqld.pid" --init-file="$init" \
    --bind-address=0.0.0.0 --port=3306 --skip-name-resolve "$@"

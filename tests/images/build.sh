#!/usr/bin/env bash
# Builds the Docker images of the test servers from Debian packages, for
# machines whose Docker daemon cannot pull them.
#
#   tests/images/build.sh [--force]
#
# SECKILL_TEST_REDIS_IMAGE, SECKILL_TEST_MYSQL_IMAGE  tags (redis:8, mysql:9)
# SECKILL_TEST_IMAGES_SUITE                           Debian suite (sid)
#
# Packages are downloaded with an apt state of their own and unpacked without
# being installed, so neither the machine's packages nor its apt lock are
# touched. An image that exists is left alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

redis_tag=${SECKILL_TEST_REDIS_IMAGE:-redis:8}
mysql_tag=${SECKILL_TEST_MYSQL_IMAGE:-mysql:9}
suite=${SECKILL_TEST_IMAGES_SUITE:-sid}
force=${SECKILL_TEST_IMAGES_FORCE:-}
[ "${1:-}" != --force ] || force=yes
docker=(docker)
docker info >/dev/null 2>&1 || docker=(sudo docker)

say() { echo "images: $*" >&2; }
die() {
    say "$*"
    exit 1
}

# The mirror of this machine's Debian release, and that release's name.
machine_mirror() {
    apt-get indextargets --format '$(ORIGIN)|$(COMPONENT)|$(REPO_URI)|$(RELEASE)' 'Created-By: Packages' |
        awk -F'|' '$1 == "Debian" && $2 == "main" && $4 !~ /-/ { print $3, $4; exit }'
}

# open_suite SUITE: an apt state for that suite alone, with nothing installed.
open_suite() {
    state=$cache/$1
    rm -rf "$state"
    mkdir -p "$state"/{lists/partial,archives/partial,preferences}
    : >"$state/status"
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg signed=
    [ ! -f "$keyring" ] || signed="[signed-by=$keyring] "
    echo "deb $signed$mirror $1 main" >"$state/sources.list"
    options=(
        -o "Dir::State=$state" -o "Dir::State::Lists=$state/lists" -o "Dir::State::status=$state/status"
        -o "Dir::Cache=$state" -o "Dir::Etc::sourcelist=$state/sources.list"
        -o Dir::Etc::sourceparts=/dev/null -o "Dir::Etc::preferencesparts=$state/preferences"
        -o Dir::Etc::preferences=/dev/null -o APT::Install-Recommends=0 -o APT::Update::Error-Mode=any
        -o APT::Sandbox::User= -o Debug::NoLocking=1 -o Acquire::Languages=none -o Acquire::Retries=2)
    apt-get -qq "${options[@]}" update
}

# unpack NAME PACKAGE...: the packages and all they need, as a file system.
unpack() {
    local name=$1
    shift
    root=$state/root-$name
    mkdir -p "$state/$name/partial" "$root"
    apt-get -qq "${options[@]}" -o "Dir::Cache::archives=$state/$name" --download-only -y install \
        base-files base-passwd dash coreutils sed grep "$@"
    # One tree under /usr, as on every present Debian.
    local top
    for top in bin sbin lib lib64; do
        mkdir -p "$root/usr/$top"
        [ -e "$root/$top" ] || ln -s "usr/$top" "$root/$top"
    done
    local deb
    for deb in "$state/$name"/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --keep-directory-symlink --no-same-owner \
            --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' \
            --exclude='./usr/share/info/*' --exclude='./usr/share/lintian/*'
    done
    # What the maintainer scripts would have done, as far as it matters here.
    cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
    cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
    echo 'mysql:x:100:101::/nonexistent:/usr/sbin/nologin' >>"$root/etc/passwd"
    echo 'mysql:x:101:' >>"$root/etc/group"
    [ -e "$root/usr/bin/sh" ] || ln -s dash "$root/usr/bin/sh"
    [ -e "$root/usr/bin/awk" ] || [ ! -e "$root/usr/bin/mawk" ] || ln -s mawk "$root/usr/bin/awk"
    mkdir -p "$root"/{tmp,run,data,var/tmp,usr/local/bin}
    chmod 1777 "$root/tmp" "$root/var/tmp"
}

# version_of NAME PACKAGE: the version that was unpacked.
version_of() { dpkg-deb -f "$(ls "$state/$1/$2"_*.deb)" Version; }

# import NAME TAG ENTRY PORT CONTENT: the file system becomes an image.
import() {
    install -m 755 "$3" "$root/usr/local/bin/entry.sh"
    echo "$5" >"$root/etc/seckill-image"
    tar -C "$root" --owner=0 --group=0 --numeric-owner -c . |
        "${docker[@]}" import \
            --change 'ENTRYPOINT ["/usr/local/bin/entry.sh"]' --change 'CMD []' \
            --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin' \
            --change "EXPOSE $4" --change "LABEL seckill.image=\"$5\"" - "$2" >/dev/null
    say "$2 built: $5"
    rm -rf "$root" "${state:?}/$1"
}

wanted() { [ -n "$force" ] || ! "${docker[@]}" image inspect "$1" >/dev/null 2>&1; }

# build_from SUITE: whichever images are wanted, from the packages of one suite.
build_from() {
    open_suite "$1"
    if wanted "$redis_tag"; then
        unpack redis redis-server redis-tools
        import redis "$redis_tag" redis-entry.sh 6379 \
            "redis-server $(version_of redis redis-server) from Debian $1"
    fi
    if wanted "$mysql_tag"; then
        # Stable Debian has no MySQL; MariaDB is the nearest thing to it.
        local server=mysql-server-core
        local packages=("$server")
        if [ -z "$(apt-cache "${options[@]}" pkgnames "$server")" ]; then
            server=mariadb-server-core
            packages=("$server" mariadb-client-core mawk)
        fi
        unpack mysql "${packages[@]}"
        import mysql "$mysql_tag" mysql-entry.sh 3306 \
            "$server $(version_of mysql "$server") from Debian $1"
    fi
}

"${docker[@]}" info >/dev/null 2>&1 || die "no Docker daemon answers; scripts/docker.sh starts one"
if ! wanted "$redis_tag" && ! wanted "$mysql_tag"; then
    say "$redis_tag and $mysql_tag are there"
    exit 0
fi
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
    die "needs apt-get and dpkg-deb: build on Debian, or load images tagged $redis_tag and $mysql_tag"
mkdir -p ../../.cache
cache=$(mktemp -d "$(cd ../../.cache && pwd)/images.XXXXXX")
trap 'rm -rf "$cache"' EXIT
read -r mirror release < <(machine_mirror) || die "no Debian mirror in this machine's apt sources"

# A suite is built in a process of its own, which stops at the first error: the
# shell would ignore errors inside a condition.
if [ "${1:-}" = --from ]; then
    build_from "$2"
    exit 0
fi
export SECKILL_TEST_IMAGES_FORCE=$force
if ! bash ./build.sh --from "$suite"; then
    say "=================================================================="
    say "Debian $suite is OUT OF REACH or cannot be installed. Building from"
    say "$release instead: the tags $redis_tag and $mysql_tag stay as asked,"
    say "but what is inside is OLDER (the label seckill.image says what)."
    say "=================================================================="
    bash ./build.sh --from "$release" || die "cannot build from Debian $release either"
fi

#!/usr/bin/env bash
# Checks the scripts in lua/: syntax, leftovers, and names that nobody defines.
set -euo pipefail
cd "$(dirname "$0")/.."

shopt -s nullglob
scripts=(lua/*.lua)
shared=(lua/lib/*.lua)
if [ ${#scripts[@]} = 0 ]; then
    echo "lua: no scripts yet"
    exit 0
fi
luac=$(command -v luac5.1 || command -v luac)
# KEYS may be written: loader_load puts its staged keys in the place of the live ones.
check=(luacheck --no-color --quiet --std lua51 --globals KEYS --read-globals redis ARGV cjson cmsgpack bit struct --no-max-line-length)

"$luac" -p "${scripts[@]}" "${shared[@]}"
# A shared step is used by the scripts it is joined to, so alone it looks unused,
# and alone a script does not know it: names are looked at in the joined text.
"${check[@]}" --no-global "${scripts[@]}"
[ ${#shared[@]} = 0 ] || "${check[@]}" --no-global --ignore 211 -- "${shared[@]}"
for script in "${scripts[@]}"; do
    cat "${shared[@]}" "$script" | "${check[@]}" --only '1..' --filename "$script" -
done
echo "lua: ${#scripts[@]} scripts and ${#shared[@]} shared steps are clean"

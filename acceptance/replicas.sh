#!/usr/bin/env bash
# Two replicas and a real Redis server: one limit, one store of waiting workflows, one memory of conversations, one cache of
# answers, one set of run records and of kept responses; and what they do once it is gone, and once it is back.
# Everything stays on 127.0.0.1 and is stopped at the end.
#
#   CHORUS     the binary
#   UPSTREAM   base URL of a scripted backend, with /v1 (`cargo xtask upstream`)
set -euo pipefail
cd "$(dirname "$0")/.."
chorus=$(realpath "${CHORUS:?the binary}")
export CHORUS_UPSTREAM=${UPSTREAM:?a scripted backend}
if ! command -v redis-server >/dev/null; then
  echo "not run: two replicas (no redis-server is on PATH; Debian: apt-get install redis-server)"
  exit 0
fi

. acceptance/servers.sh

redis_port=$(free_port)
export REDIS_PASSWORD=sesame
start_redis() {
  redis-server --port "$redis_port" --bind 127.0.0.1 --save "" --appendonly yes --appendfsync always \
    --requirepass "$REDIS_PASSWORD" --dir "$work" >>"$work/redis.log" 2>&1 &
  redis=$!
  started+=("$redis")
  until_open "$redis_port"
}
start_redis

sed "s/\${REDIS_ADDRESS}/127.0.0.1:$redis_port/g" acceptance/replicas.yaml >"$work/replicas.yaml"
replicas "$work/replicas.yaml" "$work/keys.sqlite" a b
one=${planes[0]}
python3 acceptance/replicas.py shared "$one" "${planes[2]}" || { cat "$work"/*.log >&2; exit 1; }

# Two more, which share answers and know two tenants by their keys.
sed "s/\${REDIS_PORT}/$redis_port/" acceptance/cached.yaml >"$work/cached.yaml"
keys=()
for tenant in t1 t2; do
  keys+=("$(tenant_key "$tenant" "$work/tenants.sqlite")")
done
replicas "$work/cached.yaml" "$work/tenants.sqlite" c d
cached=("${planes[@]}")
python3 acceptance/replicas.py cached "${cached[@]}" "${keys[@]}" || { cat "$work"/*.log >&2; exit 1; }

# Two more, which share run records and kept responses.
sed "s/\${REDIS_ADDRESS}/127.0.0.1:$redis_port/g" acceptance/recorded.yaml >"$work/recorded.yaml"
replicas "$work/recorded.yaml" "$work/keys.sqlite" e f
recorded=("${planes[@]}")
runs() { python3 acceptance/replicas.py "$1" "${recorded[@]}" "${@:2}" || { cat "$work"/*.log >&2; exit 1; }; }
read -ra written <<<"$(runs recorded)"

kill "$redis"
wait "$redis" 2>/dev/null || true
python3 acceptance/replicas.py alone "$one" || { cat "$work"/*.log >&2; exit 1; }
python3 acceptance/replicas.py uncached "${cached[@]:0:2}" "${keys[0]}" || { cat "$work"/*.log >&2; exit 1; }
read -ra written <<<"$(runs unrecorded "${written[@]}")"
start_redis
runs found "${written[@]}"
count=$("$chorus" runs list --config "$work/recorded.yaml" --json --limit 100 | wc -l)
[[ $count == "${#written[@]}" ]] || fail "\`chorus runs list\` shows $count of ${#written[@]} runs"

# What waiting does not mend ends the start, with its reason.
if REDIS_PASSWORD=wrong "$chorus" serve "$work/recorded.yaml" --port 0 --management-port 0 --runs-file "$work/g/runs.sqlite" \
  >"$work/g.log" 2>&1; then fail "it served with a wrong password"; fi
grep -q "it refused the password" "$work/g.log" || fail "$(cat "$work/g.log")"
echo "a wrong password of the records' server ends the start"

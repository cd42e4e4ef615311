#!/usr/bin/env bash
# Two replicas and a real PostgreSQL server: they share run records, outcomes and API keys; records of a replica that the
# database left wait on its machine and are brought over. Everything stays on 127.0.0.1 and is stopped at the end.
#
#   CHORUS     the binary
#   UPSTREAM   base URL of a scripted backend, with /v1 (`cargo xtask upstream`)
set -euo pipefail
cd "$(dirname "$0")/.."
chorus=$(realpath "${CHORUS:?the binary}")
export CHORUS_UPSTREAM=${UPSTREAM:?a scripted backend}
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1 || true)
[[ -n $bin ]] || bin=$(dirname "$(command -v initdb || echo /nowhere/initdb)")
if [[ ! -x $bin/initdb ]]; then
  echo "not run: replicas over PostgreSQL (no initdb is here; Debian: apt-get install postgresql)"
  exit 0
fi

. acceptance/servers.sh

# PostgreSQL does not run as root.
owner=()
[[ $(id -u) == 0 ]] && owner=(setpriv --reuid=postgres --regid=postgres --clear-groups)
export POSTGRES_PASSWORD=sesame
mkdir "$work/pg"
echo "$POSTGRES_PASSWORD" >"$work/password"
if [[ $(id -u) == 0 ]]; then
  chmod 711 "$work"
  chown postgres "$work/pg" "$work/password"
fi
"${owner[@]}" "$bin/initdb" --pgdata "$work/pg" --username router --pwfile "$work/password" --auth scram-sha-256 >"$work/initdb.log"
pg_port=$(free_port)
start_postgres() {
  "${owner[@]}" "$bin/postgres" -D "$work/pg" -p "$pg_port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
    >>"$work/postgres.log" 2>&1 &
  postgres=$!
  started+=("$postgres")
  until_open "$pg_port"
}
start_postgres
sql() { PGPASSWORD=$POSTGRES_PASSWORD "$bin/psql" -h 127.0.0.1 -p "$pg_port" -U router -d "$1" -qAtc "$2"; }
for _ in $(seq 100); do sql postgres "SELECT 1" >/dev/null 2>&1 && break; sleep 0.1; done
for name in chorus chorus_runs_test chorus_spool_test chorus_outcomes_test chorus_keys_test; do
  sql postgres "CREATE DATABASE $name"
done

# The stores by themselves.
CHORUS_TEST_POSTGRES=$pg_port:$POSTGRES_PASSWORD cargo test -q -p chorus-store --test real_postgres -- --ignored --nocapture

sed "s/\${POSTGRES_PORT}/$pg_port/" acceptance/postgres.yaml >"$work/postgres.yaml"
replicas=() managements=() served=()
for name in a b; do
  management=$(free_port)
  serve "$name" "$work/postgres.yaml" --management-port "$management" --require-keys
  served+=("${started[-1]}")
  replicas+=("http://127.0.0.1:$port")
  managements+=("http://127.0.0.1:$management")
done
ask() { python3 acceptance/postgres.py "$@" || { cat "$work"/*.log >&2; exit 1; }; }
keys() { "$chorus" keys "$@" --config "$work/postgres.yaml" 2>>"$work/keys.log"; }
runs() { "$chorus" runs list --config "$work/postgres.yaml" --json --limit 1000 | wc -l; }
# until_runs COUNT: so many records are there, within 30 s.
until_runs() {
  local count=0
  for _ in $(seq 60); do
    count=$(runs 2>/dev/null || echo 0)
    [[ $count == "$1" ]] && return
    sleep 0.5
  done
  cat "$work"/*.log >&2
  fail "$count records where there should be $1"
}

key=$(keys create --user ada --group staff)
ask shared "$key" "${replicas[@]}" "${managements[@]}"
until_runs 6

# The database goes away and comes back: nothing is lost, and who has a key is told to come again.
kill -INT "$postgres"
wait "$postgres" 2>/dev/null || true
ask away "$key" "${replicas[@]}"
start_postgres
for _ in $(seq 100); do keys list >/dev/null 2>&1 && break; sleep 0.2; done
ask back "$key" "${replicas[@]}"
id=$(keys list --json | python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["id"])')
keys revoke "$id"
ask revoked "$key" "${replicas[@]}"

# Without keys required, answers go on while the database is away, and their records follow.
for pid in "${served[@]}"; do kill "$pid"; wait "$pid" || true; done
kill -INT "$postgres"
wait "$postgres" 2>/dev/null || true
sed '/api_keys/d' "$work/postgres.yaml" >"$work/records.yaml"
serve a "$work/records.yaml" --management-port 0 --keys-file "$work/a/keys.sqlite"
grep -q "could not be reached" "$work/a.log" || fail "it does not say that the database is away: $(cat "$work/a.log")"
ask unkeyed "http://127.0.0.1:$port"
start_postgres
until_runs 11
echo "records that waited are brought over: 11 in all"

# What waiting does not mend ends the start, with its reason.
if POSTGRES_PASSWORD=wrong "$chorus" serve "$work/records.yaml" --port 0 --management-port 0 --runs-file "$work/d/runs.sqlite" \
  >"$work/d.log" 2>&1; then fail "it served with a wrong password"; fi
grep -q "password authentication failed" "$work/d.log" || fail "$(cat "$work/d.log")"
! grep -q "wrong" "$work/d.log" || fail "the password is shown"
echo "a wrong password ends the start"

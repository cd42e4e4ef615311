#!/usr/bin/env bash
# Two replicas and a real PostgreSQL server: they share run records, outcomes and API keys over TLS; a verdict that one is
# told moves the choices of the other; records of a replica that the database left wait on its machine and are brought over.
# Everything stays on 127.0.0.1 and is stopped at the end.
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
if ! command -v openssl >/dev/null; then
  echo "not run: replicas over PostgreSQL (no openssl is here to make certificates; Debian: apt-get install openssl)"
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
sql() {
  PGPASSWORD=$POSTGRES_PASSWORD PGOPTIONS="-c client_min_messages=warning" "$bin/psql" -h 127.0.0.1 -p "$pg_port" -U router -d "$1" -qAtc "$2"
}
# What PostgreSQL is told besides where it is.
settings=()
start_postgres() {
  "${owner[@]}" "$bin/postgres" -D "$work/pg" -p "$pg_port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
    "${settings[@]}" >>"$work/postgres.log" 2>&1 &
  postgres=$!
  started+=("$postgres")
  until_open "$pg_port"
  for _ in $(seq 100); do sql postgres "SELECT 1" >/dev/null 2>&1 && break; sleep 0.1; done
}
stop_postgres() {
  kill -INT "$postgres"
  wait "$postgres" 2>/dev/null || true
}
# test_stores WORDS...: the stores by themselves, in databases that are empty.
test_stores() {
  local name
  for name in runs spool outcomes marks keys; do
    sql postgres "DROP DATABASE IF EXISTS chorus_${name}_test"
    sql postgres "CREATE DATABASE chorus_${name}_test"
  done
  env "$@" CHORUS_TEST_POSTGRES="$pg_port:$POSTGRES_PASSWORD" \
    cargo test -q -p chorus-store --test real_postgres -- --ignored --nocapture
}
start_postgres
sql postgres "CREATE DATABASE chorus"
test_stores

# Two authorities; the server's certificate is by the first, for the name `localhost` alone. From here on it takes no
# connection that is not encrypted.
authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" \
    -keyout "$work/$1.key" -out "$work/$1.pem" 2>>"$work/openssl.log"
}
authority ours
authority other
openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout "$work/server.key" -out "$work/server.csr" 2>>"$work/openssl.log"
openssl x509 -req -in "$work/server.csr" -CA "$work/ours.pem" -CAkey "$work/ours.key" -CAcreateserial -days 2 \
  -extfile <(echo subjectAltName=DNS:localhost) -out "$work/server.pem" 2>>"$work/openssl.log"
echo "hostssl all all 127.0.0.1/32 scram-sha-256" >"$work/hba.conf"
chmod 600 "$work/server.key"
[[ $(id -u) != 0 ]] || chown postgres "$work/server.key" "$work/server.pem" "$work/hba.conf"
stop_postgres
settings=(-c ssl=on -c "ssl_cert_file=$work/server.pem" -c "ssl_key_file=$work/server.key" -c "hba_file=$work/hba.conf")
start_postgres
test_stores CHORUS_TEST_POSTGRES_TLS="$work"

# config HOST AUTHORITY: what is served.
config() {
  sed "s/\${POSTGRES_HOST}/$1/; s/\${POSTGRES_PORT}/$pg_port/; s|\${POSTGRES_CA}|$work/$2.pem|" acceptance/postgres.yaml
}
config localhost ours >"$work/postgres.yaml"
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
# How many records there are, without those of forecasts, whose number is nobody's promise.
runs() { "$chorus" runs list --config "$work/postgres.yaml" --json --limit 1000 | grep -vc '"decision":"forecasts"' || true; }
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

# A verdict that one replica is told is counted by the other within its period, and not twice by either.
ask learnt "${replicas[@]}" "${managements[@]}" "$key"

# The database goes away and comes back: nothing is lost, and who has a key is told to come again.
stop_postgres
ask away "$key" "${replicas[@]}"
start_postgres
for _ in $(seq 100); do keys list >/dev/null 2>&1 && break; sleep 0.2; done
ask back "$key" "${replicas[@]}"
id=$(keys list --json | python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["id"])')
keys revoke "$id"
ask revoked "$key" "${replicas[@]}"

# Without keys required, answers go on while the database is away, and their records follow.
for pid in "${served[@]}"; do kill "$pid"; wait "$pid" || true; done
stop_postgres
sed '/api_keys/d' "$work/postgres.yaml" >"$work/records.yaml"
serve a "$work/records.yaml" --management-port 0 --keys-file "$work/a/keys.sqlite"
grep -q "could not be reached" "$work/a.log" || fail "it does not say that the database is away: $(cat "$work/a.log")"
ask unkeyed "http://127.0.0.1:$port"
start_postgres
until_runs 11
echo "records that waited are brought over: 11 in all"

# ends_the_start CONFIG REASON: what waiting does not mend ends the start with its reason, and without the password.
ends_the_start() {
  if "$chorus" serve "$1" --port 0 --management-port 0 --runs-file "$work/d/runs.sqlite" >"$work/d.log" 2>&1; then
    fail "it served where it should have said: $2"
  fi
  grep -q "$2" "$work/d.log" || fail "$(cat "$work/d.log")"
  ! grep -q "$POSTGRES_PASSWORD" "$work/d.log" || fail "the password is shown"
}
(export POSTGRES_PASSWORD=hunter2; ends_the_start "$work/records.yaml" "password authentication failed")
config localhost other >"$work/other.yaml"
ends_the_start "$work/other.yaml" "no authority that is trusted here"
config 127.0.0.1 ours >"$work/host.yaml"
ends_the_start "$work/host.yaml" "certificate is for other hosts"
sed 's/ssl_mode: verify-full/ssl_mode: disable/' "$work/postgres.yaml" >"$work/clear.yaml"
ends_the_start "$work/clear.yaml" "no encryption"
echo "a wrong password, authority, host or mode ends the start"

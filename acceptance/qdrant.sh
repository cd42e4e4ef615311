#!/usr/bin/env bash
# Two replicas whose memories, passages and cached answers are in Qdrant, as its own client speaks it in its local mode, with found memories in a
# real Redis server where there is one; and what they do once Qdrant is gone. Everything stays on 127.0.0.1 and is stopped at the end.
#
#   CHORUS     the binary; it pulls the encoder that memories need
#   UPSTREAM   base URL of a scripted backend, with /v1 (`cargo xtask upstream`)
#   VENV       a virtual environment that may be filled (default: one in the target folder)
set -euo pipefail
cd "$(dirname "$0")/.."
chorus=$(realpath "${CHORUS:?the binary}")
export CHORUS_UPSTREAM=${UPSTREAM:?a scripted backend}
venv=${VENV:-${CARGO_TARGET_DIR:-target}/acceptance/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --requirement acceptance/requirements-qdrant.txt

. acceptance/servers.sh

qdrant_port=$(free_port)
export QDRANT_KEY=sesame
"$venv/bin/python" acceptance/qdrant_local.py "$qdrant_port" "$QDRANT_KEY" >"$work/qdrant.log" 2>&1 &
qdrant=$!
started+=("$qdrant")
until_open "$qdrant_port"

# Found memories wait in front of it, where there is a redis-server.
export FOUND=false
redis_port=$(free_port)
if command -v redis-server >/dev/null; then
  FOUND=true
  redis-server --port "$redis_port" --bind 127.0.0.1 --save "" --dir "$work" >"$work/redis.log" 2>&1 &
  started+=($!)
  until_open "$redis_port"
else
  echo "not run: found memories in front of Qdrant (no redis-server is on PATH; Debian: apt-get install redis-server)"
fi

sed "s/\${QDRANT_PORT}/$qdrant_port/; s/\${REDIS_PORT}/$redis_port/; s/\${FOUND}/$FOUND/" acceptance/qdrant.yaml >"$work/qdrant.yaml"
keys=()
for tenant in t1 t2; do
  keys+=("$(tenant_key "$tenant" "$work/tenants.sqlite")")
done
replicas "$work/qdrant.yaml" "$work/tenants.sqlite" a b
doors=("${planes[0]}" "${planes[2]}")
export CHORUS_MANAGE=${planes[3]} QDRANT=http://127.0.0.1:$qdrant_port
python3 acceptance/test_qdrant.py there "${doors[@]}" "${keys[@]}" || { cat "$work"/*.log >&2; exit 1; }
if grep -v -i 'warning\|create_payload_index' "$work/qdrant.log" | grep -q .; then
  cat "$work/qdrant.log" >&2
  fail "a question was not one of Qdrant's API"
fi
kill "$qdrant"
wait "$qdrant" 2>/dev/null || true
python3 acceptance/test_qdrant.py gone "${doors[@]}" "${keys[@]}" || { cat "$work"/*.log >&2; exit 1; }

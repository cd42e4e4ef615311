#!/usr/bin/env bash
# The product as a client sees it: serves examples/deep-research.yaml and acceptance/clients.yaml over a scripted backend,
# asks them through the official clients (OpenAI's and Anthropic's for Python and Node, the Vercel AI SDK), throws what a
# generator of requests makes of the API description at them; then the routing probes, where their data is at hand.
# Everything stays on 127.0.0.1 and is stopped at the end, whatever happens.
#
#   CHORUS          the binary (default: built here)
#   CHORUS_SHARED   the folder that holds conformance/ (default: ../shared)
#   CHORUS_MODELS   where models are kept; `chorus serve` pulls the encoder that the example needs
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
work=$target/acceptance
shared=${CHORUS_SHARED:-../shared}
patience=900 # seconds for a server to come up: the first time it pulls the encoder
mkdir -p "$work"

started=()
stop_all() {
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
}
trap stop_all EXIT
trap 'exit 130' INT TERM

# start NAME COMMAND…: in the background, with its output in $work/NAME.log.
start() {
  local name=$1
  shift
  "$@" >"$work/$name.log" 2>&1 </dev/null &
  started+=($!)
}

# address NAME WORDS: the first URL behind those words in the log of NAME, once it is there.
address() {
  local pid=${started[-1]} url
  for ((tenths = 0; tenths < patience * 10; tenths++)); do
    url=$(grep -o "$2 *http://[0-9.:]*" "$work/$1.log" 2>/dev/null | grep -o 'http://.*' | head -n 1 || true)
    if [[ -n $url ]]; then
      echo "$url"
      return
    fi
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  echo "$1 did not come up:" >&2
  cat "$work/$1.log" >&2
  return 1
}

# stop NAME: the last one that was started must end by itself, and well.
stop() {
  local pid=${started[-1]}
  unset 'started[-1]'
  kill -TERM "$pid"
  wait "$pid" || { echo "$1 did not stop well (status $?)" >&2; cat "$work/$1.log" >&2; return 1; }
}

# serve NAME FILE: a Chorus on free ports, with a store of its own.
serve() {
  rm -f "$work/$1".*sqlite*
  start "$1" "$chorus" serve "$2" --port 0 --management-port 0 --runs-file "$work/$1.sqlite" --grace 2
}

cargo build --quiet --package xtask
if [[ -n ${CHORUS:-} ]]; then
  chorus=$CHORUS
else
  cargo build --quiet --package chorus
  chorus=$target/debug/chorus
fi
[[ -x $work/venv/bin/python ]] || python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --requirement acceptance/requirements.txt

start backend "$target/debug/xtask" upstream --port 0
backend=$(address backend "listens on")
export CHORUS_UPSTREAM=$backend/v1
serve example examples/deep-research.yaml
data=$(address example "data plane")
management=$(address example "management")
CHORUS_DATA=$data/v1 CHORUS_MANAGEMENT=$management "$work/venv/bin/python" acceptance/test_openai.py --verbose
stop example
"$chorus" runs list --runs-file "$work/example.sqlite" | grep deep-research-fusion >/dev/null
echo "the server stopped well, and its records are there"

for policy in examples/recipes/*.dsl; do
  "$chorus" policy test "$policy" --base examples/recipes/team.base.yaml
done

# Two of them: what the first says in Anthropic's dialect, the second answers at its Messages door.
serve second acceptance/clients.yaml
second=$(address second "data plane")
export CHORUS_SECOND=$second
serve clients acceptance/clients.yaml
clients=$(address clients "data plane")
management=$(address clients "management")
export CHORUS_CLIENTS=$clients/v1 CHORUS_MESSAGES=$clients
"$work/venv/bin/python" acceptance/test_openai_doors.py
"$work/venv/bin/python" acceptance/test_anthropic.py
if command -v npm >/dev/null 2>&1; then
  mkdir -p "$work/node"
  cp acceptance/package.json acceptance/package-lock.json acceptance/*.mjs "$work/node/"
  [[ $work/node/node_modules/.package-lock.json -nt acceptance/package-lock.json ]] ||
    npm ci --prefix "$work/node" --no-audit --no-fund --loglevel=error
  (cd "$work/node" && node --test test_openai.mjs test_anthropic.mjs test_vercel.mjs)
else
  echo "not run: the clients for Node (npm is not here)"
fi
CHORUS_DATA=$clients CHORUS_MANAGEMENT=$management acceptance/schema.sh "$work/venv/bin"
"$chorus" runs list --runs-file "$work/clients.sqlite" --limit 500 | grep -i cancelled >/dev/null
stop clients
stop second
echo "the clients are served: answers, streams, tools, errors, retries, timeouts and aborts"

probes=$shared/conformance/run_probes.py
recipe=$shared/conformance/recipes/accuracy
if [[ -f $probes ]]; then
  serve accuracy "$recipe/config.yaml"
  management=$(address accuracy "management")
  "$work/venv/bin/python" "$probes" "$management" "$recipe/probes.yaml"
  stop accuracy
else
  echo "not run: the routing probes ($probes is not here; CHORUS_SHARED names the folder)"
fi

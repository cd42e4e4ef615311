#!/usr/bin/env bash
# Runs a suite with a scripted backend beside it: with_upstream.sh SUITE. The binary and the backend are the debug builds.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
log=$(mktemp)
"$target/debug/xtask" upstream --port 0 >"$log" 2>&1 &
backend=$!
trap 'kill $backend 2>/dev/null || true; rm -f "$log"' EXIT
for _ in $(seq 100); do
  url=$(grep -o 'http://[0-9.:]*' "$log" | head -n 1 || true)
  [[ -n $url ]] && break
  sleep 0.1
done
CHORUS=${CHORUS:-$target/debug/chorus} UPSTREAM=$url/v1 "$1"

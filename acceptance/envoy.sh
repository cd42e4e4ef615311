#!/usr/bin/env bash
# A real Envoy as the gateway: examples/envoy.yaml in front of `chorus ext-proc`, asked by the official client, once with
# answers that stream and once with whole ones. Everything stays on 127.0.0.1 and is stopped at the end.
#
#   CHORUS     the binary
#   UPSTREAM   base URL of a scripted backend, with /v1 (`cargo xtask upstream`)
#   VENV       a virtual environment that may be filled (default: one in the target folder)
set -euo pipefail
cd "$(dirname "$0")/.."
chorus=$(realpath "${CHORUS:?the binary}")
export CHORUS_UPSTREAM=${UPSTREAM:?a scripted backend}
venv=${VENV:-${CARGO_TARGET_DIR:-target}/acceptance/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --requirement acceptance/requirements.txt --requirement acceptance/requirements-envoy.txt

. acceptance/servers.sh

grpc=$(free_port)
"$chorus" ext-proc examples/deep-research.yaml --port 0 --management-port 0 --grpc-port "$grpc" --grace 2 \
  --runs-file "$work/runs.sqlite" >"$work/chorus.log" 2>&1 &
started+=($!)
until_open "$grpc"

model_port=${CHORUS_UPSTREAM##*:}
model_port=${model_port%%/*}
for mode in FULL_DUPLEX_STREAMED BUFFERED; do
  port=$(free_port)
  sed -e "s/port_value: 10000/port_value: $port/" -e "s/port_value: 50051/port_value: $grpc/" \
    -e "s/port_value: 8000/port_value: $model_port/" -e "s/request_body_mode: .*/request_body_mode: $mode/" \
    examples/envoy.yaml >"$work/envoy.yaml"
  "$venv/bin/envoy" --config-path "$work/envoy.yaml" --use-dynamic-base-id --disable-hot-restart --log-level warn \
    >"$work/envoy-$mode.log" 2>&1 &
  started+=($!)
  until_open "$port"
  echo "— Envoy with request_body_mode: $mode"
  CHORUS_GATEWAY=http://127.0.0.1:$port CHORUS_MODE=$mode "$venv/bin/python" acceptance/test_envoy.py || {
    tail -n 20 "$work/envoy-$mode.log" "$work/chorus.log" >&2
    exit 1
  }
done
"$chorus" runs list --runs-file "$work/runs.sqlite" --limit 50 | grep -q "deep-research-fusion"
echo "Envoy's requests are decided, answered and recorded"

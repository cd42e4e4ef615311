# For suites that start servers of their own; sourced, not run. It makes $work, a folder that is gone at the end, and stops
# at the end, whatever happens, every process whose id was added to `started`.

work=$(mktemp -d)
started=()
stop_all() {
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap stop_all EXIT
trap 'exit 130' INT TERM

fail() { echo "FAILED: $*" >&2; exit 1; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# until_open PORT: at most 30 s; what the servers said is shown when nothing listens by then.
until_open() {
  for _ in $(seq 300); do
    python3 -c "import socket; socket.create_connection(('127.0.0.1', $1), 1).close()" 2>/dev/null && return
    sleep 0.1
  done
  cat "$work"/*.log >&2 || true
  fail "nothing listens on port $1"
}

# serve NAME CONFIG FLAGS...: starts $chorus with run records of its own; its data plane is at $port then.
serve() {
  local name=$1
  shift
  port=$(free_port)
  "$chorus" serve "$@" --port "$port" --grace 2 --no-watch --runs-file "$work/$name/runs.sqlite" >"$work/$name.log" 2>&1 &
  started+=($!)
  until_open "$port"
}

# replicas CONFIG KEYS_FILE NAME...: starts a server for each name; the addresses of their two planes, one after the other, are
# in `planes` then.
replicas() {
  local config=$1 keys_file=$2 name management
  shift 2
  planes=()
  for name in "$@"; do
    management=$(free_port)
    serve "$name" "$config" --management-port "$management" --keys-file "$keys_file"
    planes+=("http://127.0.0.1:$port" "http://127.0.0.1:$management")
  done
}

# tenant_key USER KEYS_FILE: a new key of that user.
tenant_key() {
  "$chorus" keys create --user "$1" --keys-file "$2" 2>/dev/null | grep -o 'ck_[A-Za-z0-9_-]*' | head -n 1
}

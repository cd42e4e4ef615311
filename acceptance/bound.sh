# The built-in family under a binding of some kind, served and asked; sourced after servers.sh, in $work.

# bind HOW URL: HOW.yaml with every component here, there (at that URL), or mixed: the first here and the others there.
bind() {
  python3 - "$1.yaml" "$1" "$2" <<'PY'
import sys
path, how, url = sys.argv[1:]
here = {"draft": "smollm2-135m-instruct", "generalist": "qwen2.5-coder-0.5b-instruct", "judge": "qwen2.5-coder-0.5b-instruct"}
lines = ["format: 1", "components:"]
for at, (name, model) in enumerate(here.items()):
    local = how == "here" or (how == "mixed" and at == 0)
    backend = f"{{ type: local, model: {model} }}" if local else f"{{ base_url: \"{url}\" }}"
    trust = "process" if local else "private"
    lines += [f"  {name}:", "    deployments:"]
    lines += [f"      - {{ name: one, trust: {trust}, provider_model_id: {model}, backend: {backend} }}"]
open(path, "w").write("\n".join(lines) + "\n")
PY
}

# serve NAME ARGUMENT…: `chorus serve ARGUMENT…` on free ports; sets $data and $manage once it answers.
serve() {
  local name=$1 began
  shift
  began=$(date +%s%N)
  "$chorus" serve "$@" --port 0 --management-port 0 --runs-file "$work/$name.sqlite" --grace 2 >"$name.log" 2>&1 &
  started+=($!)
  for _ in $(seq 6000); do
    data=$(grep -o 'data plane *http://[0-9.:]*' "$name.log" | grep -o 'http://.*' || true)
    manage=$(grep -o 'management *http://[0-9.:]*' "$name.log" | grep -o 'http://.*' || true)
    [[ -n $data && -n $manage ]] && break
    kill -0 "${started[-1]}" 2>/dev/null || { cat "$name.log"; fail "it does not serve"; }
    sleep 0.05
  done
  echo "$name: ready after $((($(date +%s%N) - began) / 1000000)) ms"
}

# The server that was started last ends.
stop_last() {
  kill "${started[-1]}"
  wait "${started[-1]}" 2>/dev/null || true
  unset 'started[-1]'
}

# answers HOW BUNDLE ARGUMENT…: places, locks and serves BUNDLE under HOW.yaml, asks every point, and writes the decision
# traces of 200 prompts to HOW.decisions.
answers() {
  local how=$1 bundle=$2
  shift 2
  "$chorus" place "$bundle" --binding "$how.yaml" >/dev/null
  "$chorus" lock "$bundle" --binding "$how.yaml" --out "$how.lock" >/dev/null
  "$chorus" lock "$bundle" --binding "$how.yaml" --out "$how.lock" --check | tail -n 1
  serve "$how" "$bundle" --binding "$how.yaml" --lock "$how.lock" "$@"
  python3 "$here/decisions.py" "$data" "$manage" "$how.decisions"
  stop_last
}

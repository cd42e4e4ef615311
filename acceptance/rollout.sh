#!/usr/bin/env bash
# A version tried beside another on a running server: shadow, canary, promotion, a restart, taking back; and recorded runs
# executed again. Everything stays on 127.0.0.1 and is stopped at the end.
#
#   CHORUS     the binary
#   UPSTREAM   base URL of a scripted backend, with /v1 (`cargo xtask upstream`)
set -euo pipefail
chorus=$(realpath "${CHORUS:?the binary}")
upstream=${UPSTREAM:?a scripted backend}
here=$(cd "$(dirname "$0")" && pwd)
. "$here/servers.sh"
. "$here/bound.sh"
cd "$work"

"$chorus" build builtin:mom-v1 --out one.bundle | tail -n 1 >one.digest
"$chorus" new next --family vllm-sr/mom-v1 >/dev/null
sed -i 's/^version: .*/version: 1.1.0/' next/mom.yaml
"$chorus" build next --out next.bundle | tail -n 1 >next.digest
bind there "$upstream"
printf 'format: 1\ncomponents:\n' >next.yaml
sed -n 's/^  - name: \(.*\)/\1/p' next/mom.yaml | head -n 1 >component
printf '  %s:\n    deployments:\n      - { name: one, trust: private, backend: { base_url: "%s" } }\n' "$(cat component)" "$upstream" >>next.yaml

ask() {
  curl -s "$data/v1/chat/completions" -H 'content-type: application/json' -H "x-session-id: $1" \
    -d '{"model": "vllm-sr/auto", "messages": [{"role": "user", "content": "The sky is blue."}]}' >answer.json
  grep -q '"choices"' answer.json || { cat answer.json; fail "no answer"; }
}
roll() { "$chorus" rollout --management "$manage" "$@"; }
answered_by() {
  "$chorus" runs list --runs-file "$work/server.sqlite" --json -n 400 | python3 -c '
import collections, json, sys
runs = [json.loads(line) for line in sys.stdin]
live = [run for run in runs if run.get("purpose", "live") == "live"]
print(len(runs) - len(live), *(sum(run.get("bundle") == digest for run in live) for digest in sys.argv[1:]))
' "$(cat one.digest)" "$(cat next.digest)"
}
start() { serve server one.bundle --binding there.yaml --record content; }

start
for at in 1 2 3; do ask "s$at"; done
roll start "$work/next.bundle" --binding "$work/next.yaml"
for at in 4 5 6; do ask "s$at"; done
sleep 0.5
[[ $(answered_by) == "3 6 0" ]] || fail "three shadows and six answers by the first were expected: $(answered_by)"
echo "a shadow got three copies, and no client got its answers"

roll canary 50 | head -n 1
for at in $(seq 20); do ask "c$at"; done
sleep 0.5
read -r _ first second <<<"$(answered_by)"
((second > 0 && first > 6)) || fail "both should have answered: $first $second"
echo "of twenty conversations $second went to the candidate"

roll promote | head -n 1
ask p1
stop_last
start
grep -q "rollout goes on" server.log || { cat server.log; fail "the promotion did not outlive the process"; }
ask p2
sleep 0.5
read -r _ _ now <<<"$(answered_by)"
((now == second + 2)) || fail "the promoted version should have answered before and after the restart: $second $now"
roll rollback
ask r1
sleep 0.5
[[ $(answered_by | cut -d' ' -f3) == "$now" ]] || fail "the first version should answer again"
echo "a promotion outlives the process, and is taken back"

"$chorus" runs list --runs-file "$work/server.sqlite" --json -n 400 | python3 -c '
import json, sys
for run in map(json.loads, sys.stdin):
    if run.get("purpose", "live") == "live":
        print(run["id"], "next" if run.get("bundle") == sys.argv[1] else "one")
' "$(cat next.digest)" >runs.txt
while read -r id which; do
  binding=there.yaml
  [[ $which == next ]] && binding=next.yaml
  "$chorus" replay "$id" "$which.bundle" --binding "$binding" --runs-file "$work/server.sqlite" >replay.txt || {
    cat replay.txt
    fail "the run $id is not the same again"
  }
done < <(head -n 8 runs.txt)
echo "eight runs were executed again: $(cat replay.txt | head -n 1)"

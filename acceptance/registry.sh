#!/usr/bin/env bash
# The artifact on its way: built, signed, pushed to a real OCI registry, pulled into an empty directory, served from there;
# and what happens to a registry that lies or dies half-way. Everything stays on 127.0.0.1 and is stopped at the end.
#
#   CHORUS     the binary
#   UPSTREAM   base URL of a scripted backend, with /v1 (`cargo xtask upstream`)
#   SILENCE    seconds that a registry may be silent where it dies half-way (default 2)
#   REGISTRY   the registry's program (default: docker-registry or registry, as on PATH; Debian: docker-registry)
set -euo pipefail
chorus=$(realpath "${CHORUS:?the binary}")
upstream=${UPSTREAM:?a scripted backend}
registry=${REGISTRY:-$(command -v docker-registry || command -v registry || true)}
if [[ -z $registry ]]; then
  echo "not run: the registry (no docker-registry is on PATH; Debian: apt-get install docker-registry)"
  exit 0
fi
here=$(cd "$(dirname "$0")" && pwd)
. "$here/servers.sh"
cd "$work"

refused() {
  local word=$1
  shift
  if "$@" >refused.txt 2>&1; then fail "not refused: $*"; fi
  grep -q "$word" refused.txt || { cat refused.txt; fail "refused without $word: $*"; }
}

port=$(free_port)
cat >registry.yml <<YML
version: 0.1
log: { level: error }
storage: { filesystem: { rootdirectory: $work/storage }, delete: { enabled: true } }
http: { addr: 127.0.0.1:$port }
YML
"$registry" serve registry.yml >registry.log 2>&1 &
started+=($!)
until_open "$port"
host=127.0.0.1:$port
echo "a registry listens on $host: $("$registry" --version | head -n 1)"

"$chorus" build builtin:mom-v1 --out family.bundle | tail -n 1 | tee digest.txt
digest=$(cat digest.txt)
bytes=$(du -sb family.bundle | cut -f1)
echo "the family's bundle has $bytes bytes without weights"
((bytes <= 5 * 1024 * 1024)) || fail "the bundle is too large"

# Keys, a policy that wants a signature and an approval, and a bundle that has neither yet.
"$chorus" keygen release.key
{
  echo "format: 1"
  echo "keys:"
  echo "  release: |"
  sed 's/^/    /' release.key.pub
  echo "require:"
  echo "  - { statement: signature, keys: [release] }"
  echo "  - { statement: approval, keys: [release], max_age_days: 30 }"
} >trust.yaml
"$chorus" push family.bundle "$host/vllm-sr/mom-v1"
refused trust-unsigned "$chorus" pull "$host/vllm-sr/mom-v1:1.0.0" unsigned --policy trust.yaml
[[ ! -e unsigned ]] || fail "an unsigned bundle was written"
"$chorus" sign family.bundle --key release.key
refused trust-unsigned "$chorus" verify family.bundle --policy trust.yaml
"$chorus" sign family.bundle --key release.key --statement approval --days 30
"$chorus" verify family.bundle --policy trust.yaml --digest "$digest"
"$chorus" push family.bundle "$host/vllm-sr/mom-v1" --tag candidate
"$chorus" pull "$host/vllm-sr/mom-v1@candidate" pulled --policy trust.yaml
"$chorus" verify pulled --digest "$digest" --policy trust.yaml
"$chorus" diff family.bundle pulled | tail -n 1
"$chorus" tag "$host/vllm-sr/mom-v1@candidate" stable
"$chorus" tags "$host/vllm-sr/mom-v1" | tee tags.txt
[[ $(grep -c "$digest" tags.txt) -eq 3 ]] || fail "three tags should point at it"
"$chorus" pull "$host/vllm-sr/mom-v1@stable" stable
"$chorus" save stable stable.tar
"$chorus" verify stable.tar --policy trust.yaml
refused registry-absent "$chorus" pull "$host/vllm-sr/mom-v1@nowhere" nowhere

# A registry that dies half-way: a proxy lets so many bytes through and then hangs up.
for limit in 300 1500 4000 9000; do
  proxy=$(free_port)
  python3 "$here/half_way.py" "$proxy" "$port" "$limit" &
  started+=($!)
  until_open "$proxy"
  refused "error\[registry-\|error\[bundle-" "$chorus" pull --silence "${SILENCE:-2}" "127.0.0.1:$proxy/vllm-sr/mom-v1@stable" "half-$limit"
  [[ ! -e half-$limit ]] || fail "half a bundle was written after $limit bytes"
done
echo "a registry that dies half-way leaves nothing behind"

# A registry that lies: a blob with other bytes under the same name.
blob=$(python3 -c 'import json; m = json.load(open("pulled/blobs/sha256/'"${digest#sha256:}"'")); print(m["layers"][0]["digest"][7:])')
stored=$work/storage/docker/registry/v2/blobs/sha256/${blob:0:2}/$blob/data
python3 - "$stored" <<'PY'
import sys
path = sys.argv[1]
data = bytearray(open(path, "rb").read())
data[10] ^= 1
open(path, "wb").write(data)
PY
refused "error\[" "$chorus" pull "$host/vllm-sr/mom-v1@stable" tampered
[[ ! -e tampered ]] || fail "a tampered bundle was written"
echo "a tampered blob is refused, and nothing is written"

# The pulled bundle, bound, locked and served.
. "$here/bound.sh"
bind there "$upstream"
answers there pulled --trust trust.yaml
"$chorus" runs list --runs-file "$work/there.sqlite" --json | python3 -c '
import json, sys
runs = [json.loads(line) for line in sys.stdin]
assert runs, "no runs"
for run in runs:
    assert run["bundle"] == "'"$digest"'" and run["binding"] and run["lock"], run
print(len(runs), "records, each with the digests of bundle, binding and lock")
'

# A lock for another bundle, and one that a newer version wrote.
"$chorus" new other >/dev/null && "$chorus" build other >/dev/null
refused lock-bundle "$chorus" serve family.bundle --binding there.yaml --lock <(sed "s/${digest#sha256:}/$(printf '0%.0s' $(seq 64))/" there.lock) --port 0 --management-port 0
refused lock-newer "$chorus" serve family.bundle --binding there.yaml --lock <(sed 's/"version": 1/"version": 9/' there.lock) --port 0 --management-port 0
refused trust-unsigned "$chorus" serve other.bundle --binding there.yaml --trust trust.yaml --port 0 --management-port 0
echo "the artifact is built, signed, pushed, pulled, locked and served"

#!/usr/bin/env bash
# One bundle, three environments: the built-in family bound to models of this process, to another server over HTTP, and to a
# mix of both. Every point answers under each, and the decision traces of 200 prompts are the same. The other server is a
# `chorus serve` that knows nothing of the bundle and offers the same models, as Ollama or llama.cpp would.
#
#   CHORUS          the binary
#   CHORUS_MODELS   where models are kept (default: the user's cache)
#   OTHER           base URL, with /v1, of a server of the same models to use instead, such as Ollama's
set -euo pipefail
chorus=$(realpath "${CHORUS:?the binary}")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/servers.sh"
. "$here/bound.sh"
cd "$work"

"$chorus" build builtin:mom-v1 --out family.bundle | tail -n 1
other=${OTHER:-}
if [[ -z $other ]]; then
  cat >other.yaml <<'YAML'
version: v0.3
providers:
  defaults: { default_model: smollm2-135m-instruct }
  models:
    - { name: smollm2-135m-instruct, backend_refs: [{ type: local, model: smollm2-135m-instruct }] }
    - { name: qwen2.5-coder-0.5b-instruct, backend_refs: [{ type: local, model: qwen2.5-coder-0.5b-instruct }] }
YAML
  serve other other.yaml
  other=$data/v1
fi
for how in here there mixed; do
  bind "$how" "$other"
  answers "$how" family.bundle
done
for how in there mixed; do cmp here.decisions "$how.decisions" || fail "decisions differ between here and $how"; done
echo "the traces of $(wc -l <here.decisions) prompts are the same under three bindings, and every point answered under each"

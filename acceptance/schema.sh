#!/usr/bin/env bash
# What schemathesis makes of docs/openapi.json, thrown at both planes of a served Chorus: no 5xx that is not declared, no
# undeclared status, content type or shape. A minute at most.
#
#   schema.sh BIN    the folder of the `schemathesis` command; CHORUS_DATA and CHORUS_MANAGEMENT are the planes
set -euo pipefail
cd "$(dirname "$0")/.."

checks=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance
# plane COMMAND URL PATHS: only the operations whose path matches; one says 501 by design.
plane() {
  timeout 60 "$1" run docs/openapi.json --url "$2" --include-path-regex "$3" --exclude-path /api/v1/nli --checks "$checks" \
    --phases examples,fuzzing --max-examples 12 --max-time 25 --seed 1 --no-color --request-timeout 20 \
    --suppress-health-check all --generation-deterministic
}
plane "$1/schemathesis" "$CHORUS_DATA" '^/v1/'
plane "$1/schemathesis" "$CHORUS_MANAGEMENT" '^/(api/v1|info|health|ready)'

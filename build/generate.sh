#!/usr/bin/env bash
# Writes the generated, committed files: the frontend's typed view of the window's bound methods, its records of the client API, and the
# licences of the programs' components. With a folder, writes into that folder instead.
set -euo pipefail
cd "$(dirname "$0")/.."

into=${1:-.}
tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
CGO_ENABLED=0 go build -tags desktop,bindings -o "$tool/genbindings" ./app/genbindings
[ "$into" = . ] || cp wails.json "$into/"
(cd "$into" && "$tool/genbindings")
mkdir -p "$into/frontend/src/api"
out=$(cd "$into/frontend/src/api" && pwd)/schema.d.ts
(cd frontend && npm exec --no -- openapi-typescript ../backend/httpapi/client.openapi.json -o "$out" >/dev/null)
mkdir -p "$into/frontend/public"
go run ./build/licenses -o "$into/frontend/public/licenses.json"

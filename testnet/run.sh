#!/bin/sh
# A testnet of real nodes on this machine: see `run.sh --help`.
cd "$(dirname "$0")/.." || exit 1
exec go run ./cmd/atoll testnet "$@"

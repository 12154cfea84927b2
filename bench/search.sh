#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The graph search on recorded machines beside the times recorded for the reference. Needs KOLO_SHARED (or ../shared).
# Usage: bench/search.sh [options of bench/search.py]
set -eu
cd "$(dirname "$0")/.."
shared=${KOLO_SHARED:-../shared}
[ -d "$shared/golden" ] || { echo "no recorded machines: set KOLO_SHARED"; exit 0; }
cmake --build build/release --target search_time >/dev/null
exec python3 bench/search.py --golden "$shared/golden" --topologies "$shared/topologies" "$@"

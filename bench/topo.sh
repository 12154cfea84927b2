#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From topology files to paths: CPU time over the machines there are (KOLO_SHARED, else those in tests/data), and for 576
# GPUs in one NVLink domain (144 hosts of 4).
set -eu
cd "$(dirname "$0")/.."
cmake --build build/release --target topo_time >/dev/null
folder=${KOLO_SHARED:-../shared}/topologies
[ -d "$folder" ] || folder=tests/data/topologies
find "$folder" -name '*.xml' ! -name '*.graph.xml' | sort | xargs build/release/bin/topo_time 2>/dev/null
machine=$(find "$folder" -name gb200-4gpu-4nic.xml | head -n 1)
[ -n "$machine" ] && [ -x /usr/bin/time ] || exit 0
printf '576 GPUs in one NVLink domain, `kolo graph` in all: '
/usr/bin/time -f '%U s CPU, %M KiB' build/release/kolo graph --topo "$machine" --hosts 144 --mnnvl --graph ring 2>&1 >/dev/null | tail -n 1

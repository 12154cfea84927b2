#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Init at scale: the cost of a communicator of many ranks, which are threads of processes that emulate a host each, with one root
# and with several, beside a linear ring (bench/ring_join.c) that does the work of the first two phases of init: all ranks exchange
# addresses and identities. Interleaved in rounds; medians of seconds. Then comes an all-reduce, which is checked, and the end.
#
# Usage: bench/init.sh [ROUNDS]     needs build/release. LAYOUTS are PROCESSESxTHREADS:ROUNDS-AT-MOST, ROOTS the number of several roots.
set -eu
cd "$(dirname "$0")/.."
build=${KOLO_BUILD:-build/release} rounds=${1:-5}
layouts=${LAYOUTS:-8x8:9 16x16:9 16x64:5 64x64:3} roots=${ROOTS:-8}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
export KOLO_BOOTSTRAP_TIMEOUT=600 NCCL_ALGO=${NCCL_ALGO:-Tree}

measure() { # measure NAME KIND ROOTS
    "$build/bin/init_time" "$2" "${layout%x*}" "${layout#*x}" "$3" >>"$work/$layout.$1" || echo "# $1 $layout failed" >&2
}

for l in $layouts; do
    layout=${l%:*} n=${l#*:}
    [ "$n" -lt "$rounds" ] || n=$rounds
    for round in $(seq "$n"); do
        echo "# $layout: round $round of $n" >&2
        measure kolo kolo 1
        measure kolo-many kolo "$roots"
        measure ring ring 1
    done
done

median() { # median FILE NAME
    awk -v name="$2" '{ for (i = 1; i < NF; i += 2) if ($i == name) print $(i + 1) }' "$1" | sort -n |
        awk '{ v[NR] = $1 } END { if (NR) printf "%s", v[int((NR + 1) / 2)]; else printf "-" }'
}

row() { # row LABEL FILE
    printf '%-8s%-10s%-14s' "$ranks" "$layout" "$1"
    for name in met init reduce end cpu messages bytes kib peak_kib fds root_fds; do printf '%-10s' "$(median "$2" $name)"; done
    echo
}

printf '# medians of up to %s rounds; NCCL_ALGO=%s; load %s\n' "$rounds" "$NCCL_ALGO" "$(cut -d' ' -f1-3 /proc/loadavg)"
printf '%-8s%-10s%-14s' ranks layout what
for name in met init reduce end cpu messages bytes kib peak_kib fds root_fds; do printf '%-10s' $name; done
echo
for l in $layouts; do
    layout=${l%:*} ranks=$((${l%x*} * $(echo "${l%:*}" | cut -dx -f2)))
    row "kolo, 1 root" "$work/$layout.kolo"
    row "kolo, $roots" "$work/$layout.kolo-many"
    row "linear ring" "$work/$layout.ring"
done

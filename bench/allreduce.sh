#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All-reduce of floats over 2 ranks, Kolo beside Open MPI, interleaved in rounds; medians, spread and ratio.
# Kolo's ranks are processes, processes that run each operation inside the call, and threads of one process.
#
# Usage: bench/allreduce.sh [ROUNDS]     needs build/release and, for the peer, Debian's openmpi-bin and libopenmpi-dev
set -eu
cd "$(dirname "$0")/.."
kolo=build/release/kolo rounds=${1:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cases="8:20000 1048576:300 67108864:5"

measure_kolo() { # measure_kolo NAME OPTIONS...
    name=$1
    shift
    for c in $cases; do
        us=$("$kolo" perf all_reduce "$@" -b "${c%:*}" -e "${c%:*}" -n "${c#*:}" -w 5 -c 0 2>/dev/null |
            awk '!/^#/ && NF > 6 { print $6; exit }')
        echo "${c%:*} $us" >>"$work/$name"
    done
}

names="kolo-processes kolo-inline kolo-threads"
if command -v mpicc.openmpi >/dev/null && mpicc.openmpi -O2 bench/mpi_allreduce.c -o "$work/mpi"; then
    names="$names openmpi"
else
    echo "# Open MPI is not installed: no peer"
fi
for round in $(seq "$rounds"); do
    measure_kolo kolo-processes --np 2
    measure_kolo kolo-inline --np 2 --inline
    measure_kolo kolo-threads --np 1 -t 2
    case $names in *openmpi*) # shellcheck disable=SC2086
        mpirun.openmpi --allow-run-as-root --oversubscribe -np 2 "$work/mpi" $cases >>"$work/openmpi" ;;
    esac
done

printf '# %s rounds; us: median (min-max); ratio to Open MPI: below 1 is faster\n' "$rounds"
printf '%-12s' bytes
for n in $names; do printf '%-34s' "$n"; done
echo
for c in $cases; do
    printf '%-12s' "${c%:*}"
    peer=$(awk -v b="${c%:*}" '$1 == b { print $2 }' "$work/openmpi" 2>/dev/null | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
    for n in $names; do
        awk -v b="${c%:*}" '$1 == b { print $2 }' "$work/$n" | sort -n | awk -v peer="$peer" '{ v[NR] = $1 } END {
            m = v[int((NR + 1) / 2)]
            printf "%-34s", sprintf("%.2f (%.2f-%.2f)%s", m, v[1], v[NR], peer ? sprintf(" x%.2f", m / peer) : "") }'
    done
    echo
done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# random_kernels_test.sh [SEED...] - do random kernels, as random_kernels.py makes them, give the same results as loops and as fibres?
# Reads KOLO_BUILD; SANITIZE is the -fsanitize= value of the libraries' build. A failure leaves the program's seed in the output.
set -eu
here=$(dirname "$0")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
options="-std=c++17 -I$here --resource-usage"
[ -z "${SANITIZE:-}" ] || options="$options -Xcompiler -fsanitize=$(echo "$SANITIZE" | sed 's/,/\\,/g'),-fno-sanitize-recover=all"
[ $# -gt 0 ] || set -- 1 2

for seed; do
    python3 "$here/random_kernels.py" "$seed" >"$scratch/random.cu"
    # shellcheck disable=SC2086 # words without spaces
    "$KOLO_BUILD/kolo-nvcc" $options -O1 --barriers=fibres "$scratch/random.cu" -o "$scratch/fibres" 2>"$scratch/messages" ||
        { cat "$scratch/messages"; echo "seed $seed: does not compile"; exit 1; }
    # shellcheck disable=SC2086
    "$KOLO_BUILD/kolo-nvcc" $options -O2 "$scratch/random.cu" -o "$scratch/loops" 2>"$scratch/report" || { cat "$scratch/report"; exit 1; }
    ! grep 'does not compile' "$scratch/report" || { echo "seed $seed: does not compile as loops"; exit 1; }
    "$scratch/fibres" >"$scratch/fibres.results"
    "$scratch/loops" >"$scratch/loops.results"
    diff "$scratch/fibres.results" "$scratch/loops.results" || { echo "seed $seed: loops give other results than fibres"; exit 1; }
    echo "seed $seed: $(grep -c 'loops over' "$scratch/report") kernels as loops, $(grep -c 'a fibre' "$scratch/report") with fibres"
done

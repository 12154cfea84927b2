#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# small_floats_test.sh - are numbers of 8 and 16 bits equal to NVIDIA's headers', bit by bit?
set -eu
here=$(dirname "$0")
toolkit=${KOLO_NVIDIA_TOOLKIT:-/usr/local/cuda}
if [ ! -f "$toolkit/include/cuda_fp8.h" ]; then
    echo "skipped: no $toolkit/include/cuda_fp8.h"
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

[ -n "$(grep -l e8m0 "$toolkit/include/cuda_fp8.h")" ] && scales=-DSCALES || scales= # since CUDA 12.8

# say HEADERS: the program's output with them.
say() {
    g++ -std=c++17 -w -O1 -ffp-contract=off $scales -I "$1" "$here/small_floats.cpp" -o "$scratch/program"
    "$scratch/program"
}
say "$toolkit/include" >"$scratch/theirs"
say "$here/../../include" >"$scratch/ours"
[ "$(wc -l <"$scratch/ours")" -gt 50 ] || exit 1
diff "$scratch/theirs" "$scratch/ours"

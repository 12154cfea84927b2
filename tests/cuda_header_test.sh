#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program compiled with the nccl.h of a CUDA toolkit, of whatever version is installed, runs with Kolo's library.
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
tried=0

for include in "${CUDA_HOME:-/none}"/include /usr/local/cuda-*/include; do
    [ -f "$include/nccl.h" ] && [ -f "$include/cuda_runtime.h" ] || continue
    tried=$((tried + 1))
    cc -I "$include" tests/abi/program.c -o "$dir/program" -L "$KOLO_BUILD" -lkolo -Wl,-rpath,"$KOLO_BUILD" || exit 1
    timeout "${TEST_HANG_S:-900}" "$dir/program" || {
        echo "compiled with $include/nccl.h, it fails"
        exit 1
    }
done
if [ $tried -eq 0 ]; then
    echo "skipped: no CUDA toolkit with nccl.h in CUDA_HOME or /usr/local/cuda-*"
    exit 77
fi

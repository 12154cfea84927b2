#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# nvcc_test.sh NAME [OPTION...] - does NVIDIA's compiler take the same source? There is no GPU to run it on, so it stops at PTX,
# which takes a third of the time.
set -eu
here=$(dirname "$0")
nvcc=${KOLO_NVIDIA_NVCC:-/usr/local/cuda/bin/nvcc}
if [ ! -x "$nvcc" ]; then
    echo "skipped: no $nvcc"
    exit 77
fi
name=$1
shift
for header in cublas_v2.h curand_kernel.h; do # packages of their own
    if grep -q "<$header>" "$here/$name.cu" && [ ! -f "$(dirname "$nvcc")/../include/$header" ]; then
        echo "skipped: the toolkit of $nvcc has no $header"
        exit 77
    fi
done
arch=sm_90
[ "$name" != multicast_bytes ] || arch=sm_100a # which has instructions for numbers of 8 bits
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for source in "$here/$name.cu" "$here/${name}_more.cu"; do
    [ ! -f "$source" ] || "$nvcc" -std=c++17 --extended-lambda -arch=$arch -ptx "$@" "$source" -o "$scratch/$name.ptx"
done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same sources with NVIDIA's compiler and headers: they compile; there need be no GPU.
. "$(dirname "$0")/place.sh"
home=${KOLO_NVIDIA_CUDA:-/usr/local/cuda}
if [ ! -x "$home/bin/nvcc" ] || [ ! -f "$home/include/nccl.h" ]; then
    echo "skipped: no CUDA toolkit with nvcc and nccl.h in $home"
    exit 77
fi

for source in examples/nccl/*.c; do
    [ "$source" = examples/nccl/mpi.c ] || cc -std=c17 -Wall -Wextra -Werror -fsyntax-only -I "$home/include" "$source"
done
for source in examples/jacobi/jacobi.cu examples/training/training.cu examples/perf/*.cu; do
    "$home/bin/nvcc" -std=c++17 -arch=sm_90 -Werror all-warnings -Xcompiler -Wall,-Wextra -c "$source" -o "$dir/object"
done

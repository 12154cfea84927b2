#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same sources with NVIDIA's compiler, headers and libraries. They compile, and the programs without kernels run without being compiled again: no GPU is needed.
. "$(dirname "$0")/place.sh"
home=${KOLO_NVIDIA_CUDA:-/usr/local/cuda}
if [ ! -x "$home/bin/nvcc" ] || [ ! -f "$home/include/nccl.h" ]; then
    echo "skipped: no CUDA toolkit with nvcc and nccl.h in $home"
    exit 77
fi

for name in one_process threads split nonblocking registration ring; do
    cc -std=c17 -Wall -Wextra -Werror -I "$home/include" -c examples/nccl/$name.c -o "$dir/object.o"
    cc "$dir/object.o" -o "$dir/$name" -L "$home/lib64" -lcudart -lnccl -pthread 2>"$dir/link" || continue # no libnccl there
    expect ": 8 ranks, 0 wrong" "$KOLO_BUILD/kolo" run --cuda --topo tests/data/topologies/synthetic/a100-nvsw-8nic-200g.xml -- "$dir/$name"
done
for source in examples/jacobi/jacobi.cu examples/training/training.cu examples/perf/*.cu; do
    "$home/bin/nvcc" -std=c++17 -arch=sm_90 -Werror all-warnings -Xcompiler -Wall,-Wextra -c "$source" -o "$dir/object.o"
done

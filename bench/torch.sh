#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# PyTorch's collectives over Kolo, gloo and others: sizes by collectives, DDP and FSDP steps, a tensor-parallel decoding step. Rounds of fresh
# processes, backends in turn; each figure is the median over rounds of the slowest rank's time per call. Results are checked. Needs ./dev setup --torch.
#
# Usage: bench/torch.sh [OPTIONS of bench/torch/bench.py]     --help lists them
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "${KOLO_BUILD:-build/release}")
python=$(sed -n 's/^KOLO_TORCH_PYTHON_USED:INTERNAL=//p' "$build/CMakeCache.txt")
[ -n "$python" ] || { echo "bench/torch: no PyTorch: ./dev setup --torch, or -DKOLO_TORCH_PYTHON=FILE" >&2 && exit 1; }
cmake --build "$build" --target kolo_torch kolocc_core kolocc_plan >/dev/null
mkdir -p build/bench
# As those stacks compile theirs: for this processor, with OpenMP.
"${CC:-cc}" -D_GNU_SOURCE -O3 -march=native -fopenmp -shared -fPIC bench/torch/shm_kernel.c bench/torch/cores_apart.c -o build/bench/shm_kernel.so
PYTHONPATH=$build/python exec "$python" bench/torch/bench.py --shm "$PWD/build/bench/shm_kernel.so" "$@"

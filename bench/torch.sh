#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# PyTorch's collectives over Kolo and over gloo: sizes by collectives, a DDP step, a tensor-parallel decoding step. Rounds of fresh processes,
# backends in turn; each figure is the median over rounds of the slowest rank's time per call. Results are checked. Needs ./dev setup --torch.
#
# Usage: bench/torch.sh [OPTIONS of bench/torch/bench.py]     --help lists them
set -eu
cd "$(dirname "$0")/.."
build=${KOLO_BUILD:-build/release}
python=$(sed -n 's/^KOLO_TORCH_PYTHON_USED:INTERNAL=//p' "$build/CMakeCache.txt")
[ -n "$python" ] || { echo "bench/torch: no PyTorch: ./dev setup --torch, or -DKOLO_TORCH_PYTHON=FILE" >&2 && exit 1; }
cmake --build "$build" --target kolo_torch kolocc_core kolocc_plan >/dev/null
PYTHONPATH=$PWD/$build/python exec "$python" bench/torch/bench.py "$@"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Build and run the micro-benchmark of the reduction kernels: bench/redop.sh [TYPE|all] [OP|all] [TABLE|all|best]
set -e
cd "$(dirname "$0")/.."
cmake --preset release >/dev/null
cmake --build --preset release --target redop_bench >/dev/null
exec build/release/bin/redop_bench "$@"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kernel_test.sh NAME [OPTION...] - compile NAME.cu (and NAME_more.cu) with kolo-nvcc, and run it on one device and on all.
# Reads KOLO_BUILD; SANITIZE is the -fsanitize= value of the libraries' build.
set -eu
here=$(dirname "$0")
name=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sources=$here/$name.cu
[ ! -f "$here/${name}_more.cu" ] || sources="$sources $here/${name}_more.cu"
level=-O2
[ -z "${SANITIZE:-}" ] || set -- "$@" -Xcompiler "-fsanitize=$(echo "$SANITIZE" | sed 's/,/\\,/g'),-fno-sanitize-recover=all"
if grep -q '#include <cub/\|#include <thrust/' "$here/$name.cu"; then
    printf '#include <cub/version.cuh>\n' >"$scratch/probe.cu"
    "$KOLO_BUILD/kolo-nvcc" -E "$scratch/probe.cu" >/dev/null 2>&1 || { echo "skipped: no headers of CUB; CUDA's toolkit has them"; exit 77; }
    level=-O1 # -O2 takes a third longer for these templates; the other kernels are compiled so
fi

# shellcheck disable=SC2086 # names of sources, without spaces
"$KOLO_BUILD/kolo-nvcc" -std=c++17 --extended-lambda -arch=sm_90 $level -Xcompiler -Wall,-Wextra $sources -o "$scratch/$name" "$@"
CUDA_VISIBLE_DEVICES=0 "$scratch/$name" >"$scratch/one" 2>&1 || { cat "$scratch/one"; exit 1; }
"$scratch/$name"

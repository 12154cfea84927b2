#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# regions_test.sh NAME - do the kernels of NAME.cu give the same results as loops and as fibres, and are all those loops that can be?
# Reads KOLO_BUILD; SANITIZE is the -fsanitize= value of the libraries' build.
set -eu
here=$(dirname "$0")
source=$here/$1.cu
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
[ -z "${SANITIZE:-}" ] || set -- "$@" -Xcompiler "-fsanitize=$(echo "$SANITIZE" | sed 's/,/\\,/g'),-fno-sanitize-recover=all"

# run NAME OPTION...: compile, run, and keep the words of the compiler and of the program.
run() {
    name=$1
    shift
    "$KOLO_BUILD/kolo-nvcc" -std=c++17 -Xcompiler -Wall,-Wextra,-Wno-sign-compare --resource-usage "$source" -o "$scratch/$name" "$@" \
        2>"$scratch/$name.report" || { cat "$scratch/$name.report"; exit 1; }
    "$scratch/$name" >"$scratch/$name.results"
    CUDA_VISIBLE_DEVICES=0 "$scratch/$name" | diff - "$scratch/$name.results" || { echo "$name: one device gives other results"; exit 1; }
}

# How each kernel is to be run stands before it.
sed -n 's#.*/\* \(loops\|fibres\) \*/ __global__ void \([a-z_]*\)(.*#\2 \1#p' "$source" >"$scratch/wanted"
[ "$(wc -l <"$scratch/wanted")" -gt 15 ] || { echo "no kernels were found in $source"; exit 1; }

levels='-O0 -O2 -O3'
[ -z "${SANITIZE:-}" ] || levels=-O2 # the memory that loops use is the same at each
run fibres --barriers=fibres -O2 "$@"
for level in $levels; do
    run loops$level $level "$@"
    sed -n 's/.*note: kernel \([a-z_]*\): \(loops\|a fibre\).*/\1 \2/p' "$scratch/loops$level.report" | sed 's/a fibre/fibres/' >"$scratch/found"
    diff "$scratch/wanted" "$scratch/found" || { echo "$level: these kernels should be run otherwise"; cat "$scratch/loops$level.report"; exit 1; }
    ! grep -v 'note: kernel' "$scratch/loops$level.report" || { echo "$level: the compiler has more to say than about kernels"; exit 1; }
    diff "$scratch/fibres.results" "$scratch/loops$level.results" || { echo "$level: loops give other results than fibres"; exit 1; }
done
! grep 'kernel' "$scratch/fibres.report" || exit 1

# Where threads may add to the same place of shared memory, the compiler must not take several at once; elsewhere it may.
cat >"$scratch/count.cu" <<'EOF'
__global__ void count(int *out, const int *in)
{
    __shared__ int bins[64];

    bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[in[threadIdx.x]], 1);
    __syncthreads();
    out[threadIdx.x] = bins[threadIdx.x];
}
EOF
several=$("$KOLO_BUILD/kolo-nvcc" --translate "$scratch/count.cu" | sed -n '/ count(/,$p' | grep -c '#pragma omp simd')
[ "$several" -eq 2 ] || { echo "$several of 3 regions take several threads at once, not 2"; exit 1; }
echo "$(grep -c loops "$scratch/wanted") kernels as loops, $(wc -l <"$scratch/fibres.results") results"

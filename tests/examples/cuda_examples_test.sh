#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs with kernels: 1 to 8 devices, 1 to 4 processes. Each compares its result with the host's, bit by bit.
. "$(dirname "$0")/place.sh"
export KOLO_HOST_DEVICES=8

for name in jacobi training; do
    size=4 # steps
    [ $name = training ] || size="102 20" # points, iterations
    "$KOLO_BUILD/kolo-nvcc" -O2 -Xcompiler -Wall,-Wextra,-Werror examples/$name/$name.cu -o "$dir/$name" -lnccl
    for shape in "1 1" "1 3" "1 8" "2 1" "2 4" "3 2" "4 1" "4 2"; do
        # shellcheck disable=SC2086 # numbers
        expect ": 0 wrong, 0 processes failed" "$dir/$name" $shape $size
    done
done
# Their communicators on GPUs of the stand-in. Ranks of one process cannot have a graph each there, as jacobi's devices have.
for gpus in 1 2 8; do
    for shape in "1 1" "1 8" "2 4" "4 2"; do
        # shellcheck disable=SC2086 # numbers
        on_gpus "$gpus" ": 0 wrong, 0 processes failed" "$dir/training" $shape 2
    done
    on_gpus "$gpus" ": 0 wrong, 0 processes failed" "$dir/jacobi" 4 1 102 20
done
KOLO_CUDA_STRICT=1 on_gpus 2 ": 0 wrong, 0 processes failed" "$dir/training" 2 2 2
expect "203 x 203 points, 10 iterations: 0 wrong" "$dir/jacobi" 1 7 203 10 # bands of different heights, blocks that are not full

# A kernel that is not quite right is noticed.
sed 's/0\.25 \* ((tile/0.2500001 * ((tile/' examples/jacobi/jacobi.cu >"$dir/wrong.cu"
cmp -s examples/jacobi/jacobi.cu "$dir/wrong.cu" && exit 1
"$KOLO_BUILD/kolo-nvcc" -I examples/jacobi "$dir/wrong.cu" -o "$dir/wrong" -lnccl
if "$dir/wrong" 1 2 102 20 >"$dir/out"; then
    echo "a wrong kernel, and the program says:"
    cat "$dir/out"
    exit 1
fi

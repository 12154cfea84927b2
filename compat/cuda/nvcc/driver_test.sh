#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# driver_test.sh - kolo-nvcc as build files call it: its outputs, its messages, the places of errors. Reads KOLO_BUILD.
set -eu
nvcc=$KOLO_BUILD/kolo-nvcc
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir between
export TMPDIR="$scratch/between"

fail() {
    echo "FAILED: $*"
    exit 1
}

# says WORDS COMMAND...: the command's output has the words.
says() {
    words=$1
    shift
    "$@" >out 2>&1 || true
    grep -qF -- "$words" out || {
        cat out
        fail "\"$words\" is not said by: $*"
    }
}

cat >k.cuh <<'END'
#pragma once
template <class T> __global__ void twice(T *p) { p[threadIdx.x] *= 2; }
#define LAUNCH(k, n, ...) k<<<1, n>>>(__VA_ARGS__)
END
cat >main.cu <<'END'
#include "k.cuh"
#include <cstdio>
int helper(int);
__device__ int from_other(int);
__global__ void use(int *p) { *p = from_other(*p); }
int main()
{
    int *p;
    if (cudaMallocManaged(&p, 2 * sizeof(int))) return 1;
    p[0] = 3, p[1] = 4;
    LAUNCH(twice, 2, p);
    use<<<1, 1>>>(p);
    if (cudaDeviceSynchronize()) return 1;
    std::printf("%d %d %d\n", p[0], p[1], helper(VALUE));
    return 0;
}
END
echo '__device__ int from_other(int x) { return x + 100; }' >other.cu
echo 'int helper(int x) { return x + 1; }' >helper.cpp
echo 'int in_c(void) { return 7; }' >plain.c

# One step, and the steps of a build with separate compilation.
"$nvcc" -DVALUE=1 -rdc=true -gencode arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90 main.cu other.cu helper.cpp plain.c -o one
[ "$(./one)" = "106 8 2" ] || fail "one step: $(./one)"
"$nvcc" -DVALUE=2 -dc -MD -O3 --extended-lambda -Xptxas -v,-O3 -Xcompiler -Wall,-fPIC main.cu -o main.o
grep -q 'main.o:.*main.cu' main.d && grep -q 'k.cuh' main.d || fail "main.d: $(cat main.d)"
"$nvcc" -dc other.cu
"$nvcc" -c helper.cpp -o helper.o
"$nvcc" -dlink main.o other.o -o dlink.o
"$nvcc" -lib other.o helper.o -o libboth.a
"$nvcc" main.o dlink.o libboth.a -lpthread -cudart=static -o two 2>out
[ "$(grep -c 'the runtime that is linked is the shared one' out)" = 1 ] || fail "a static runtime: $(cat out)"
[ "$(./two)" = "106 8 3" ] || fail "in steps: $(./two)"
cp other.cu other.txt
"$nvcc" -x cu -c other.txt -o other.o
"$nvcc" -shared -Xcompiler -fPIC other.cu helper.cpp -o libshared.so
[ -s libshared.so ] || fail "no shared library"
echo '-DVALUE=4 -O1' >words
"$nvcc" --options-file words main.cu other.cu helper.cpp -run >out
grep -q '106 8 5' out || fail "options from a file: $(cat out)"
g++ -DVALUE=1 -c helper.cpp -o helper.o

# Queries.
says 'nvcc: NVIDIA (R) Cuda compiler driver' "$nvcc" --version
says 'release 13.0, V13.0.88' "$nvcc" -V
says 'main.o: ' "$nvcc" -DVALUE=1 -M main.cu
says 'void twice' "$nvcc" -DVALUE=1 -E main.cu
says '__kolo::push' "$nvcc" -DVALUE=1 --translate main.cu
says '#$ TOP=' "$nvcc" -DVALUE=1 --dryrun main.cu
[ "$("$nvcc" --version | sed -n 's/^.*release \([0-9]*\.[0-9]*\).*$/\1/p')" = 13.0 ] || fail "the number that makefiles cut out"
says 'no input files' "$nvcc" -O2
says 'kolo-nvcc: -cubin: kolo-nvcc makes no code for GPUs' "$nvcc" -cubin main.cu
says 'kolo-nvcc: --fatbin: kolo-nvcc makes no code for GPUs' "$nvcc" --fatbin main.cu
says 'kolo-nvcc: hybrid: no kind of runtime library (static, shared, none)' "$nvcc" -cudart hybrid main.cu

# Errors are where the program's author finds them.
printf '#include "bad.cuh"\n' >bad.cu
printf '\n\n__device__ void f()\n{\n    asm("wgmma.fence.sync;");\n}\n' >bad.cuh
says 'no translation to CPUs for the PTX instruction "wgmma.fence.sync"' "$nvcc" -c bad.cu
says 'bad.cuh:5:' "$nvcc" -c bad.cu
sed -i 's/__device__/template <class T> __device__/' bad.cuh # code that nothing needs is no error
"$nvcc" -c bad.cu || fail "an unused template is an error"
printf '__global__ void k(int *p)\n{\n    *p = undeclared;\n}\n' >bad.cu
says "bad.cu:3:" "$nvcc" -c bad.cu
printf 'void f()\n{\n    5<<<1, 1>>>();\n}\n' >bad.cu
says "bad.cu:3: error: the operand before" "$nvcc" -c bad.cu
! "$nvcc" -c bad.cu 2>/dev/null || fail "an error is success"
printf '__global__ void k(int *p)\n{\n    *p = __shfl(1, 2);\n}\n' >bad.cu
says "name the lanes that take part" "$nvcc" -c bad.cu
printf '__constant__ char c[70000];\n' >bad.cu
says "constant memory has 64 KiB" "$nvcc" -c bad.cu
[ -z "$(ls between)" ] || fail "left between phases: $(ls between)"

# CMake takes it by its toolchain file.
if command -v cmake >/dev/null; then
    mkdir project
    cp main.cu other.cu helper.cpp k.cuh project
    cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(p LANGUAGES CXX CUDA)
add_executable(p main.cu other.cu helper.cpp)
target_compile_definitions(p PRIVATE VALUE=6)
find_package(CUDAToolkit REQUIRED)
target_link_libraries(p PRIVATE CUDA::cudart CUDA::cuda_driver)
set_target_properties(p PROPERTIES CUDA_STANDARD 17)
END
    cmake -S project -B build -DCMAKE_TOOLCHAIN_FILE="$KOLO_BUILD/lib/kolo/cuda/cmake/kolo-cuda.cmake" >out 2>&1 || { cat out; fail "cmake"; }
    cmake --build build >out 2>&1 || { cat out; fail "cmake --build"; }
    said=$(LD_LIBRARY_PATH=$KOLO_BUILD/lib/kolo/cuda build/p)
    [ "$said" = "106 8 7" ] || fail "built by cmake: $said"
fi
echo done

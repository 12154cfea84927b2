#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs as others build them: with the stand-in's headers, for CUDA 12, with NVIDIA's toolkit where it is installed; all started by
# `kolo run --cuda`.
set -u
here=compat/cuda/tests/programs
libs=$KOLO_BUILD/lib/kolo/cuda
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
export KOLO_HOST_DEVICES=4

fail() {
    echo "$1"
    exit 1
}

run() { # run WHAT COMMAND...
    what=$1
    shift
    timeout 60 "$KOLO_BUILD/kolo" run --cuda "$@" >"$dir/out" 2>"$dir/err" || { cat "$dir/out" "$dir/err"; fail "$what failed"; }
}

# The stand-in's own headers, C and C++, one process and several.
for cc in "cc -std=c99" "c++ -x c++ -std=c++11"; do
    $cc -Wall -Wextra -Werror -I compat/cuda/include $here/devices.c -o "$dir/devices" -L "$libs" -lcudart || exit 1
    run "a program of '$cc'" -- "$dir/devices"
    grep -q "devices 4 version 13000 properties 1008" "$dir/out" || { cat "$dir/out"; fail "it said something else"; }
done
# The C++ library behind the header.
printf '#include <cuda_runtime.h>\n#include <memory>\n#include <mutex>\n#include <thread>\nint main() { return *std::make_shared<int>(0); }\n' >"$dir/behind.cc"
c++ -std=c++17 -Wall -Wextra -Werror -I compat/cuda/include "$dir/behind.cc" -o "$dir/behind" -L "$libs" -lcudart || fail "libstdc++ does not compile behind cuda_runtime.h"
run "two processes" -n 2 --tag -- "$dir/devices"
[ "$(grep -c 'devices 4' "$dir/out")" = 2 ] || fail "two processes did not say so"

CUDA_VISIBLE_DEVICES=-1 "$KOLO_BUILD/kolo" run --cuda -- "$dir/devices" >"$dir/out" 2>"$dir/err" && fail "it ran without devices"
grep -q "error 100 count 0" "$dir/out" || { cat "$dir/out"; fail "no devices are another error"; }
CUDA_VISIBLE_DEVICES=2,0,-1,1 "$KOLO_BUILD/kolo" run --cuda -- "$dir/devices" >"$dir/out" || fail "two visible devices"
grep -q "devices 2" "$dir/out" || { cat "$dir/out"; fail "not two devices are visible"; }

# A program that links none of the libraries, and finds them while it runs.
cc $here/finds_driver.c -o "$dir/finds_driver" -ldl || exit 1
run "a program that opens the driver's library" -- "$dir/finds_driver"
grep -q "devices 4" "$dir/out" || { cat "$dir/out"; fail "it did not find the devices"; }

# One device for each process, also on emulated hosts.
cc -I compat/cuda/include -I include $here/ranks.c -o "$dir/ranks" -L "$libs" -lcudart -L "$KOLO_BUILD" -lkolo -Wl,-rpath,"$(realpath "$KOLO_BUILD")" || exit 1
for hosts in 1 2; do
    rm -f "$dir/id"
    run "four processes on $hosts hosts" -n 4 --hosts $hosts -- "$dir/ranks" "$dir/id"
    [ "$(grep -c 'right' "$dir/out")" = 4 ] || { cat "$dir/out"; fail "a result is wrong"; }
done

# A stream of each thread, chosen before the header.
cc -DCUDA_API_PER_THREAD_DEFAULT_STREAM -I compat/cuda/include $here/per_thread.c -o "$dir/per_thread" -L "$libs" -lcudart -lpthread || exit 1
run "the threads' default streams" -- "$dir/per_thread"
nm -D "$dir/per_thread" | grep -q 'cudaMemcpyAsync_ptsz' || fail "the header did not choose the threads' default streams"

# CUDA 12: another soname and version, other structures, other signatures. Its library is only there to be linked with.
printf 'libcudart.so.12 { global: cuda*; };\n' >"$dir/12.map"
sed -n 's/^NEEDS(\(.*\))$/int \1(void) { return 0; }/p' $here/twelve.c >"$dir/12.c"
mkdir "$dir/12"
cc -w -shared -fPIC "$dir/12.c" -o "$dir/12/libcudart.so.12" -Wl,-soname,libcudart.so.12,--version-script="$dir/12.map" || exit 1
cc -DCUDART_VERSION=12080 -I compat/cuda/include $here/twelve.c -o "$dir/twelve" "$dir/12/libcudart.so.12" || exit 1
nm -D "$dir/twelve" | grep -q 'cudaMallocManaged@libcudart.so.12' || fail "the program does not ask for CUDA 12"
run "a program of CUDA 12" -- "$dir/twelve"

# Kernels of NCCL's device API compile; there is no device communicator to run them with.
"$KOLO_BUILD/kolo-nvcc" -std=c++17 $here/device_api.cu -o "$dir/device_api" -lnccl || exit 1
run "a program with NCCL's device API" -- "$dir/device_api"
grep -q "device API 0, create 5, destroy 0" "$dir/out" || { cat "$dir/out"; fail "its device API is another one"; }

# NVIDIA's headers and libraries.
toolkit=
for t in "${CUDA_HOME:-/none}" /usr/local/cuda; do
    [ -f "$t/include/cuda_runtime_api.h" ] && [ -z "$toolkit" ] && toolkit=$t
done
[ -n "$toolkit" ] || { echo "no CUDA toolkit in CUDA_HOME or /usr/local/cuda: the rest is left out"; exit 0; }

for headers in compat/cuda/include "$toolkit/include"; do
    cc -w -I "$headers" $here/layouts.c -o "$dir/layouts" || exit 1
    "$dir/layouts" >"$dir/layouts.$(echo "$headers" | cksum | cut -d' ' -f1)" || fail "the layouts of $headers"
done
cmp "$dir"/layouts.* || { diff "$dir"/layouts.*; fail "layouts differ from $toolkit's"; }
# Every name that a header has for a default stream of each thread is there; and unless the function is refused, so is not that.
for of in "cuda.h libcuda.so.1 driver" "cuda_runtime_api.h libcudart.so.13 runtime"; do
    set -- $of
    nm -D --defined-only "$libs/$2" | sed 's/.* //; s/@.*//' >"$dir/exported"
    sed -n 's/.*__CUDA\(RT\)\{0,1\}_API_\(PT[SD][SZ]\)(\(cu[A-Za-z0-9_]*\)).*/\3 \2/p' "$toolkit/include/$1" | sort -u >"$dir/own"
    [ "$(wc -l <"$dir/own")" -gt 50 ] || fail "no names for threads' streams in $1"
    while read -r name kind; do
        own=${name}_$(echo "$kind" | tr A-Z a-z)
        grep -qx "$own" "$dir/exported" || fail "$2 lacks $own"
        refused=compat/cuda/$3/refused.inc
        grep -qx "REFUSED($name)" $refused || ! grep -qx "REFUSED($own)" $refused || fail "$2 has $name, and refuses $own"
        [ "$3" = runtime ] || grep -qx "REFUSED($name)" $refused || grep -qx "OWN($name, $own)" compat/cuda/driver/per_thread.inc || fail "cuGetProcAddress does not find $own"
    done <"$dir/own"
done

for lib in "$toolkit/lib64" "$toolkit/lib"; do
    [ -f "$lib/libcudart.so.13" ] || continue
    cc -I "$toolkit/include" $here/devices.c -o "$dir/theirs" "$lib/libcudart.so.13" || exit 1
    run "a program of NVIDIA's libcudart" -- "$dir/theirs"
    grep -q "devices 4" "$dir/out" || fail "it ran with another library"
    names=$(nm -D --defined-only "$lib/libcudart.so.13" | sed -n 's/.* \([^ @]*\)@@.*/\1/p' | sort)
    ours=$(nm -D --defined-only "$libs/libcudart.so.13" | sed -n 's/.* \([^ @]*\)@@.*/\1/p' | sort)
    missing=$(printf '%s\n' "$names" | while read -r n; do printf '%s\n' "$ours" | grep -qx "$n" || echo "$n"; done)
    [ -n "$names" ] || fail "no names in $lib/libcudart.so.13"
    [ -z "$missing" ] || fail "libcudart lacks: $missing"
    if [ -x "$toolkit/bin/nvcc" ] && "$toolkit/bin/nvcc" -cudart shared $here/kernel.cu -o "$dir/kernel" -L "$lib" 2>"$dir/nvcc"; then
        run "a binary of nvcc" -- "$dir/kernel"
        grep -q "launch 209" "$dir/out" || { cat "$dir/out"; fail "its launch was not refused"; }
        grep -q "kolo-nvcc" "$dir/err" || fail "it was not said why"
        if "$toolkit/bin/nvcc" -cudart static $here/kernel.cu -o "$dir/static" -L "$lib" 2>"$dir/nvcc"; then
            timeout 60 "$KOLO_BUILD/kolo" run --cuda -- "$dir/static" >"$dir/out" 2>"$dir/err" && fail "the static runtime ran"
            grep -q "cudart shared" "$dir/err" || fail "it was not said that the runtime must be shared"
        fi
    else
        echo "no nvcc that works: its binaries are left out"
    fi
    break
done

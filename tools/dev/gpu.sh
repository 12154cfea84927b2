#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpu.sh COMMAND - communicators on GPUs, without and with one.
#
#   kernels   registers and spills of each kernel and architecture, from the last release build
#   pack      the release build's library, kernels and tests in build/gpu/, for a machine with a GPU
#   run       there: run the tests on the GPU; logs and a table in $OUT (build/gpu/out)
set -eu
cd "$(dirname "$0")/../.."
build=build/release
bundle=build/gpu

kernels() {
    [ -s $build/gpu-kernels.txt ] || { echo "there is no $build/gpu-kernels.txt: ./dev build, with nvcc 13" && exit 1; }
    awk '
        /Compiling entry function/ { split($0, part, "\047"); name = part[2]; arch = part[4] }
        /bytes stack frame/ { spilt = $5 + $9 }
        /Used [0-9]+ registers/ { for (i = 1; i <= NF; i++) if ($i == "Used") print name, arch, $(i + 1), spilt
                                  spills += spilt > 0; n++ }
        END { printf "%d kernels, %d with spills\n", n, spills }' $build/gpu-kernels.txt
}

pack() {
    for file in libkolo-cuda.so.0 bin/gpu_test bin/gpu_errors_test; do
        [ -e "$build/$file" ] || { echo "there is no $build/$file: ./dev build, with nvcc 13" && exit 1; }
    done
    rm -rf $bundle
    mkdir -p $bundle/bin $bundle/lib
    cp -L $build/libkolo-cuda.so.0 $bundle/
    cp $build/bin/gpu_test $build/bin/gpu_errors_test $bundle/bin/
    for name in $(ldd $bundle/bin/gpu_test | sed -n 's/.*=> \([^ ]*\) .*/\1/p' | grep -E 'expat|sodium|cmocka'); do cp -L "$name" $bundle/lib/; done
    git log -1 --format=%H >$bundle/commit
    du -sh $bundle
}

# part NAME LIMIT_S COMMAND...: a line of the table.
part() {
    name=$1 limit=$2
    shift 2
    rc=0 began=$(date +%s)
    timeout "$limit" "$@" >"$out/$name.log" 2>&1 || rc=$?
    case $rc in 0) result=passed ;; 77) result=skipped ;; 124) result="over $limit s" ;; *) result="failed ($rc)" ;; esac
    printf '%-28s %-12s %4s s  %s\n' "$name" "$result" $(($(date +%s) - began)) "$(grep -E 'compared|FAILED|ERROR' "$out/$name.log" | head -1)" | tee -a "$out/report.txt"
    [ $rc -eq 0 ] || bad=1
}

run() {
    out=${OUT:-$bundle/out} bad=0
    [ -d $bundle/bin ] || { echo "there is no $bundle: ./dev gpu pack, where nvcc 13 is" && exit 1; }
    mkdir -p "$out"
    export LD_LIBRARY_PATH="$PWD/$bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" KOLO_DEVICES=cuda
    { echo "commit $(cat $bundle/commit)" && nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader; } 2>/dev/null | tee "$out/report.txt" || true
    for mover in auto direct copy; do part "bits-$mover" 90 env KOLO_CUDA_MOVER=$mover $bundle/bin/gpu_test; done
    part errors 60 $bundle/bin/gpu_errors_test
    part all-bits 120 env GPU_TEST_ALL=1 $bundle/bin/gpu_test
    if command -v compute-sanitizer >/dev/null; then
        part memcheck 120 env GPU_TEST_RANKS=2 compute-sanitizer --error-exitcode 9 $bundle/bin/gpu_test
    fi
    exit $bad
}

case ${1-} in
kernels | pack | run) "$1" ;;
*) sed -n '3,7s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpu.sh COMMAND [BUILD] - communicators on GPUs, without and with one.
#
#   kernels   registers and spills of each kernel and architecture, from BUILD (build/release)
#   pack      BUILD's kernels and tests in build/gpu/, at most 64 MiB, for a machine with a GPU
#   run       there: run the tests on the GPU; report.txt, report.json and logs in $OUT (build/gpu/out). GPU_SECONDS: for all parts (380)
#   try       here: pack, and run the bundle from an empty folder over the CUDA stand-in of BUILD
#
# run needs a driver, not a toolkit; compute-sanitizer is used where there is one. It changes no setting of a GPU, starts no
# service, and ends whatever takes longer than its limit. Exit: 0 all passed, 1 some failed, 77 there is no GPU.
set -eu
cd "$(dirname "$0")/../.."
build=${2:-build/release}
bundle=build/gpu
programs='gpu_test gpu_errors_test gpu_processes_test gpu_schedule_test gpu_speed'
libraries='expat|jansson|sodium|cmocka' # that a machine may not have

kernels() {
    [ -s "$build/gpu-kernels.txt" ] || { echo "there is no $build/gpu-kernels.txt: ./dev build, with nvcc 13" && exit 1; }
    awk '
        /Compiling entry function/ { split($0, part, "\047"); name = part[2]; arch = part[4] }
        /bytes stack frame/ { spilt = $5 + $9 }
        /Used [0-9]+ registers/ { for (i = 1; i <= NF; i++) if ($i == "Used") print name, arch, $(i + 1), spilt
                                  spills += spilt > 0; n++ }
        END { printf "%d kernels, %d with spills\n", n, spills }' "$build/gpu-kernels.txt"
}

pack() {
    rm -rf $bundle
    mkdir -p $bundle/bin $bundle/lib
    [ -e "$build/libkolo-cuda.so.0" ] || { echo "there is no $build/libkolo-cuda.so.0: ./dev build, with nvcc 13" && exit 1; }
    cp -L "$build/libkolo-cuda.so.0" $bundle/
    for name in $programs; do
        [ -x "$build/bin/$name" ] || { echo "there is no $build/bin/$name: ./dev build" && exit 1; }
        cp "$build/bin/$name" $bundle/bin/
    done
    strip --strip-debug $bundle/bin/* 2>/dev/null || true
    ldd $bundle/bin/* | sed -n 's/.*=> \([^ ]*\) .*/\1/p' | grep -E "lib($libraries)" | sort -u | while read -r name; do cp -L "$name" $bundle/lib/; done
    git log -1 --format=%H >$bundle/commit
    size=$(du -sm $bundle | cut -f1)
    echo "$bundle: $size MiB of commit $(cut -c1-8 $bundle/commit)"
    [ "$size" -le 64 ] || { echo "more than 64 MiB cannot be sent" && exit 1; }
}

text_of() { # text_of LOG: its line for the table
    grep -E 'compared|measured:|skipped:|FAILED|ERROR|PASSED' "$1" | tail -1 | tr -d '"\\\t' | cut -c1-120
}

# part NAME LIMIT_S COMMAND...: a line of the table. Skipped when less than its limit is left.
part() {
    name=$1 limit=$2
    shift 2
    rc=0 began=$(date +%s)
    if [ $((began + limit)) -gt "$until" ]; then
        rc=77
        echo "skipped: less than $limit s were left" >"$out/$name.log"
    else
        timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1 || rc=$?
    fi
    case $rc in
    0) result=passed passed=$((passed + 1)) ;;
    77) result=skipped skipped=$((skipped + 1)) ;;
    124 | 137) result="over $limit s" failed=$((failed + 1)) ;;
    *) result="failed ($rc)" failed=$((failed + 1)) ;;
    esac
    took=$(($(date +%s) - began))
    printf '%-14s %-12s %4s s  %s\n' "$name" "$result" $took "$(text_of "$out/$name.log")" | tee -a "$out/report.txt"
    printf '{"part": "%s", "result": "%s", "seconds": %s, "text": "%s"}\n' "$name" "$result" $took "$(text_of "$out/$name.log")" >>"$out/report.json"
}

facts() {
    gpu=unknown
    if command -v nvidia-smi >/dev/null; then gpu=$(timeout 20 nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | head -8 | tr '\n"' "; ") || gpu=unknown; fi
    echo "commit $(cat $bundle/commit), GPU: $gpu" | tee "$out/report.txt"
    printf '{"commit": "%s", "gpu": "%s"}\n' "$(cat $bundle/commit)" "$gpu" >"$out/report.json"
}

run() {
    [ -d $bundle/bin ] || { echo "there is no $bundle: ./dev gpu pack, where nvcc 13 is" && exit 1; }
    out=${OUT:-$bundle/out} passed=0 failed=0 skipped=0
    until=$(($(date +%s) + ${GPU_SECONDS:-380}))
    mkdir -p "$out"
    export LD_LIBRARY_PATH="$PWD/$bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" KOLO_DEVICES=cuda
    facts
    part errors 60 $bundle/bin/gpu_errors_test
    part processes 60 $bundle/bin/gpu_processes_test
    for mover in auto direct copy; do part "bits-$mover" 60 env KOLO_CUDA_MOVER=$mover $bundle/bin/gpu_test; done
    part schedules 60 env NCCL_MAX_NCHANNELS=4 $bundle/bin/gpu_schedule_test
    part speed 90 env GPU_SPEED_JSON="$out/speed.json" $bundle/bin/gpu_speed "${GPU_BYTES:-256M}" 60
    if [ -s "$out/speed.json" ]; then cat "$out/speed.json" >>"$out/report.json"; fi
    part all-bits 90 env GPU_TEST_ALL=1 $bundle/bin/gpu_test
    if command -v compute-sanitizer >/dev/null; then
        part memcheck 90 env GPU_TEST_RANKS=2 GPU_TEST_ONE_PROCESS=1 compute-sanitizer --error-exitcode 9 $bundle/bin/gpu_test
    fi
    echo "$passed passed, $failed failed, $skipped skipped" | tee -a "$out/report.txt"
    if [ $failed -gt 0 ]; then exit 1; fi
    if [ $passed -eq 0 ]; then exit 77; fi
}

# As on another machine: nothing but the bundle, this script, and the stand-in as the driver.
try() {
    pack
    folder=$(mktemp -d) rc=0 here=$(cd "$build" && pwd)
    mkdir -p "$folder/tools/dev" "$folder/build"
    cp tools/dev/gpu.sh "$folder/tools/dev/"
    cp -r $bundle "$folder/build/"
    LD_LIBRARY_PATH=$here/lib/kolo/cuda KOLO_CUDA_LIBRARY=$here/libkolo-cuda-standin.so.0 KOLO_HOST_DEVICES=8 KOLO_CUDA_THREADS=64 GPU_BYTES=${GPU_BYTES:-1M} OUT=$folder/out sh "$folder/tools/dev/gpu.sh" run || rc=$?
    cp -r "$folder/out" $bundle/
    rm -rf "$folder"
    exit $rc
}

case ${1-} in
kernels | pack | run | try) "$1" ;;
*) sed -n '3,11s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac

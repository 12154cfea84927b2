#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The benchmarks: built by their Makefile with another NVCC, and run by threads, on an emulated cluster, and by MPI.
. "$(dirname "$0")/place.sh"
machine=tests/data/topologies/synthetic/a100-nvsw-8nic-200g.xml
fine="# Out of bounds values : 0 OK"

command -v make >/dev/null || { echo "skipped: no make"; exit 77; }

# build FOLDER SETTING...: all of them.
build() {
    folder=$1
    shift
    if make -j2 -C examples/perf BUILDDIR="$folder" NVCC="$KOLO_BUILD/kolo-nvcc" "$@" >"$dir/make" 2>&1; then return 0; fi
    cat "$dir/make"
    exit 1
}

build "$dir/perf"
all="all_reduce all_gather reduce_scatter broadcast reduce gather scatter alltoall sendrecv"
for name in $all; do
    KOLO_HOST_DEVICES=8 expect "$fine" "$dir/perf/${name}_perf" -b 64 -e 4K -f 64 -g 3 -t 2 -n 1 -d all -o all -r 4
    expect "$fine" "$KOLO_BUILD/kolo" run --cuda --topo $machine --hosts 2 -n 16 -- "$dir/perf/${name}_perf" -b 1K -e 256K -f 16 -n 2
    grep -q "^#  Rank 15 .* device  7 \[0000:62:00\] NVIDIA A100" "$dir/out"
done

# The same on GPUs of the stand-in: of one, two, and one each, by threads, by one thread with groups, and by processes.
for name in $all; do
    for shape in "1 -g 4" "2 -g 2 -t 2" "8 -g 1 -t 8" "8 -g 4 -t 2"; do
        # shellcheck disable=SC2086 # words
        on_gpus "${shape%% *}" "$fine" "$dir/perf/${name}_perf" -b 64 -e 4K -f 64 ${shape#* } -n 1 -d all -o all -r 3
    done
    on_gpus 8 "$fine" "$KOLO_BUILD/kolo" run --cuda -n 4 -- "$dir/perf/${name}_perf" -b 1K -e 256K -f 16 -n 2
done

# With the queues of a GPU, which two ranks of each process share: no operation waits behind one that needs it.
for _ in 1 2 3 4; do
    KOLO_CUDA_STRICT=1 on_gpus 1 "$fine" "$KOLO_BUILD/kolo" run --cuda -n 2 -- "$dir/perf/all_reduce_perf" -b 1K -e 256K -f 16 -n 2 -g 2
done

# Wrong results are counted: a sendrecv that expects the data of another rank.
sed 's/me + ranks - 1/me + 1/' examples/perf/sendrecv.cu >"$dir/wrong.cu"
"$KOLO_BUILD/kolo-nvcc" -std=c++17 -I examples/perf "$dir/wrong.cu" "$dir"/perf/main.o "$dir"/perf/job.o "$dir"/perf/options.o \
    "$dir"/perf/table.o "$dir"/perf/verify.o -o "$dir/wrong" -lnccl
if "$dir/wrong" -b 1K -e 1K -g 3 -n 1 >"$dir/out" 2>&1 || ! grep -q "FAILED" "$dir/out"; then
    echo "wrong data are not found:"
    cat "$dir/out"
    exit 1
fi

for home in "${MPI_HOME:-}" /usr/lib/*/openmpi; do
    [ -f "$home/include/mpi.h" ] && command -v mpirun.openmpi >/dev/null || continue
    build "$dir/mpi" MPI=1 MPI_HOME="$home"
    KOLO_HOST_DEVICES=8 expect "$fine" mpirun.openmpi --oversubscribe -np 4 "$dir/mpi/all_reduce_perf" -b 1K -e 64K -f 8 -g 2 -n 2
    grep -q "^#  Rank  7 " "$dir/out"
    exit 0
done
echo "without MPI: no mpi.h of Open MPI in MPI_HOME or /usr/lib/*/openmpi/include"

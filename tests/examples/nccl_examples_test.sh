#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that use NCCL from one process: on one device, on some, on the devices of an emulated machine.
. "$(dirname "$0")/place.sh"
machine=$PWD/tests/data/topologies/synthetic/a100-nvsw-8nic-200g.xml

for name in one_process threads split nonblocking registration ring; do
    build_c cc examples/nccl/$name.c "$dir/$name"
    for devices in 1 2 3 8; do
        expect ": $devices ranks, 0 wrong" env KOLO_HOST_DEVICES=$devices "$dir/$name"
        [ $name = registration ] || on_gpus "$devices" ": $devices ranks, 0 wrong" "$dir/$name" # GPUs have no windows
    done
    expect ": 8 ranks, 0 wrong" env NCCL_TOPO_FILE="$machine" "$dir/$name"
    expect ": 5 ranks, 0 wrong" env NCCL_TOPO_FILE="$machine" CUDA_VISIBLE_DEVICES=7,0,3,2,5 "$dir/$name"
done

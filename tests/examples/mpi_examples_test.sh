#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A process for each device: examples/nccl/mpi.c with each MPI that is here.
. "$(dirname "$0")/place.sh"
tried=0

# try NAME ARGUMENTS...: mpicc.NAME, and mpirun.NAME with these.
try() {
    name=$1
    shift
    command -v "mpicc.$name" >/dev/null && command -v "mpirun.$name" >/dev/null || return 0
    tried=$((tried + 1))
    build_c "mpicc.$name" examples/nccl/mpi.c "$dir/$name"
    for ranks in 1 4; do
        expect "$ranks ranks, 0 wrong" "mpirun.$name" "$@" -np $ranks "$dir/$name"
    done
}

try openmpi --oversubscribe
try mpich
if [ $tried -eq 0 ]; then
    echo "skipped: no MPI is installed with mpicc.openmpi or mpicc.mpich"
    exit 77
fi

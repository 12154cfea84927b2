#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# examples/mpi.c as docs/clusters.md says: built by each MPI that is here, and started by its launcher.
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
tried=0

# try NAME ARGUMENTS...: mpicc.NAME, and mpirun.NAME with these.
try() {
    name=$1
    shift
    command -v "mpicc.$name" >/dev/null && command -v "mpirun.$name" >/dev/null || return 0
    tried=$((tried + 1))
    "mpicc.$name" -Wall -Wextra -Werror -I include examples/mpi.c -o "$dir/hello" -L "$KOLO_BUILD" -lkolo \
        -Wl,-rpath,"$KOLO_BUILD" || exit 1
    timeout "${TEST_HANG_S:-900}" "mpirun.$name" "$@" -np 3 "$dir/hello" >"$dir/out" 2>"$dir/err"
    [ "$(grep -c "rank [0-2] of 3: fine" "$dir/out")" -eq 3 ] && return 0
    echo "mpirun.$name: not three ranks that are fine:"
    cat "$dir/out" "$dir/err"
    exit 1
}

try openmpi --oversubscribe
try mpich
if [ $tried -eq 0 ]; then
    echo "skipped: no MPI is installed with mpicc.openmpi or mpicc.mpich"
    exit 77
fi

# SPDX-License-Identifier: Apache-2.0
# place.sh - shared by the tests of examples: a folder for their builds, the places of headers and libraries, expect, and on_gpus.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export CUDA_HOME="$KOLO_BUILD/lib/kolo/cuda" NCCL_HOME="$KOLO_BUILD/lib/kolo/nccl"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset CUDA_VISIBLE_DEVICES KOLO_HOST_DEVICES NCCL_TOPO_FILE

# build_c COMPILER SOURCE PROGRAM: with the options that a user with GPUs gives, of other places.
build_c() {
    "$1" -std=c17 -Wall -Wextra -Werror -I "$CUDA_HOME/include" -I "$NCCL_HOME/include" "$2" -o "$3" \
        -L "$CUDA_HOME" -lcudart -L "$NCCL_HOME/lib" -lnccl -pthread -Wl,-rpath,"$CUDA_HOME:$NCCL_HOME:$KOLO_BUILD"
}

# expect TEXT COMMAND...: it ends with 0 and prints the text.
expect() {
    text=$1
    shift
    if timeout "${TEST_HANG_S:-900}" "$@" >"$dir/out" 2>&1 && grep -qF "$text" "$dir/out"; then return 0; fi
    echo "$*: not \"$text\", but:"
    cat "$dir/out"
    exit 1
}

# on_gpus N TEXT COMMAND...: expect, with communicators on N GPUs of the stand-in.
on_gpus() {
    gpus=$1
    shift
    KOLO_DEVICES=cuda KOLO_HOST_DEVICES=$gpus LD_LIBRARY_PATH="$CUDA_HOME" expect "$@"
}

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh - conda-build runs it in the source tree: $PREFIX, $SP_DIR (site-packages) and $PYTHON are conda's.
set -eu
cmake -S . -B build-conda -G Ninja ${CMAKE_ARGS-} -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$PREFIX" -DCMAKE_INSTALL_LIBDIR=lib \
    -DKOLO_TESTS=OFF -DKOLO_GPU=OFF -DPython3_EXECUTABLE="$PYTHON" -DKOLO_PYTHON_INSTALL_DIR="${SP_DIR#"$PREFIX"/}"
cmake --build build-conda
cmake --install build-conda --strip

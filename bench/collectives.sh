#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Collectives of Kolo beside Open MPI, MPICH and gloo, measured in turns; options as `bench/collectives.sh --help` says.
exec python3 "$(dirname "$0")/collectives/run.py" "$@"

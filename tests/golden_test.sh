#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# golden_test.sh - `kolo graph` agrees with the recorded results of the reference, for every recorded machine.
#
# The records are third-party data and not part of the project; KOLO_SHARED says where they are.
set -eu
compare=${KOLO_SHARED-}/tools/compare_golden.py

if [ ! -f "$compare" ]; then
    echo "golden_test: no recorded results (KOLO_SHARED)"
    exit 77
fi
exec python3 "$compare" --kolo "$KOLO_BUILD/kolo" -j "$(nproc)"

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
# One folder of records for each release; each record names its own, which is passed as --nccl.
seen=
for records in "$KOLO_SHARED"/golden "$KOLO_SHARED"/golden-*; do
    if [ -d "$records" ]; then
        seen=1
        echo "$records"
        python3 "$compare" --kolo "$KOLO_BUILD/kolo" --golden "$records" -j "$(nproc)"
    fi
done
[ "$seen" ] || { echo "golden_test: no records in $KOLO_SHARED"; exit 1; }

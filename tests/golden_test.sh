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
    if grep -rq '"is_all_nvlink"' --include='*.json' "$records"; then # records of plans
        seen=1
        echo "$records"
        # The tuning of a release to come (2.31.0a16) is not the release's.
        sections=
        if grep -rqE '"reference": *"NCCL [0-9.]+a' --include='*.json' "$records"; then
            sections="--sections nodes,system,paths,queries,ring_net,ring,tree,collnet,nvls,aligned,channels,rings,trees"
        fi
        # shellcheck disable=SC2086 # words
        python3 "$compare" --kolo "$KOLO_BUILD/kolo" --golden "$records" -j "$(nproc)" $sections
    fi
done
[ "$seen" ] || { echo "golden_test: no records in $KOLO_SHARED"; exit 1; }

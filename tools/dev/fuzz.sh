#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh NAME SECONDS - replay tests/fuzz/corpus/NAME, then look for new inputs for SECONDS (0: only replay).
#
# New inputs are kept in build/fuzz/corpus/NAME for the next time; one that fails is saved in build/fuzz/found/ and belongs,
# with its fix, into tests/fuzz/corpus/NAME.
set -eu

name=$1 seconds=$2
target=build/fuzz/bin/${name}_fuzz
corpus=tests/fuzz/corpus/$name
kept=build/fuzz/corpus/$name
mkdir -p "$kept" build/fuzz/found

[ -x "$target" ] || { echo "fuzz: no $target; is $name in tests/fuzz/CMakeLists.txt?" && exit 1; }
[ -d "$corpus" ] || { echo "fuzz: no $corpus: a target comes with inputs to start from" && exit 1; }

options="-artifact_prefix=build/fuzz/found/$name- -timeout=20 -rss_limit_mb=2048 -max_len=65536"
[ -f "tests/fuzz/$name.dict" ] && options="$options -dict=tests/fuzz/$name.dict"
# AddressSanitizer of clang 14 does not start everywhere under full address randomisation.
setarch "$(uname -m)" -R true 2>/dev/null && target="setarch $(uname -m) -R $target"

$target $options -runs=0 "$corpus"
[ "$seconds" -gt 0 ] || exit 0
$target $options -max_total_time="$seconds" -print_final_stats=1 "$kept" "$corpus"

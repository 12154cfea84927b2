#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kolo env, as a user sees it. Arguments: the tool, the source folder.
set -u
kolo=$1 source=$2
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
if [ -e /etc/nccl.conf ]; then
    echo "skipped: /etc/nccl.conf of this machine would change the output"
    exit 77
fi
mkdir "$dir/home"
# shellcheck source=tests/cli/expect.sh
. "${0%/*}/expect.sh"

# run EXIT_CODE "ARGUMENTS" VARIABLE=TEXT...: run `kolo env` with nothing else set.
run() {
    want=$1 arguments=$2
    shift 2
    # shellcheck disable=SC2086 # arguments of this test hold no blanks
    env -i HOME="$dir/home" "$@" "$kolo" env $arguments >"$dir/out" 2>"$dir/err"
    got=$?
    what="$* kolo env $arguments"
    [ $got -eq "$want" ] || fail "exit code $got, not $want"
}

run 0 ""
out "log"
out "bootstrap"
out "comm"
out "  NCCL_DEBUG = NONE (default)"
out "      how much is logged; each level includes those before it"
out '      one of NONE, VERSION, WARN, ATTN, INFO, ABORT, TRACE; default "NONE"'
out "  NCCL_COMM_ID = (unset)"
out "      an integer from 1 to 86400; default \"60\""
silent err

run 0 "--set" NCCL_DEBUG=INFO
out "  NCCL_DEBUG = INFO (environment)"
no NCCL_BUFFSIZE
silent err # the tool's output is no place for its own log
[ "$(grep -c NCCL_DEBUG "$dir/out")" = 1 ] || fail "the log is mixed into the output"

run 0 "comm"
out "  NCCL_BUFFSIZE = -2 (default)"
no NCCL_DEBUG
run 0 "NCCL_BUFFSIZE" NCCL_BUFFSIZE=4M NCCL_DEBUG=WARN
out "  NCCL_BUFFSIZE = 4M (environment)"
no NCCL_DEBUG

run 1 "--set" NCCL_BUFFSIZE=lots
out '  NCCL_BUFFSIZE = -2 (default; refused: "lots" from environment)'
run 1 "--set" NCCL_BUFSIZE=4M KOLO_ELEPHANTS=3 NCCL_IB_ECE_ENABLE=mlx5 KOLO_RANK=0 NCCL_TESTS_DEVICE=1
out "NCCL_BUFSIZE (environment): unknown, no effect; did you mean NCCL_BUFFSIZE?"
out "KOLO_ELEPHANTS (environment): unknown, no effect"
out "NCCL_IB_ECE_ENABLE (environment): known to NCCL, no effect in Kolo"
out "KOLO_RANK (environment): rank of this process, for koloInitFromEnv"
out "NCCL_TESTS_DEVICE (environment): for the benchmark programs"
run 1 "NCCL_BUFSIZE" NCCL_BUFSIZE=4M
out "NCCL_BUFSIZE (environment): unknown, no effect; did you mean NCCL_BUFFSIZE?"
run 0 "NCCL_ALGO" NCCL_BUFSIZE=4M
no NCCL_BUFSIZE

run 0 "NCCL_IB_ECE_ENABLE"
out "NCCL_IB_ECE_ENABLE: known to NCCL, no effect in Kolo"
run 2 "NCCL_IB_ECE_ENABLEK"
err 'kolo env: no module or parameter "NCCL_IB_ECE_ENABLEK"; did you mean NCCL_IB_ECE_ENABLE?'
silent out
run 2 "elephants --json"
err 'kolo env: no module or parameter "elephants"; `kolo env` lists all'
silent out
run 2 "--elephants"
err 'kolo env: unknown option --elephants; `kolo env --help` explains'
run 2 "comm log"
run 2 "--markdown --set"
run 0 "--help"
out "usage: kolo env [MODULE|NAME] [options]"

printf '# mine\nNCCL_DEBUG=WARN\nnonsense\nNCCL_BUFFSIZE=1M\nNCCL_BUFSIZE=2M\n' >"$dir/home/.nccl.conf"
run 1 "--set" NCCL_DEBUG=INFO
out "  NCCL_DEBUG = INFO (environment)"
out "  NCCL_BUFFSIZE = 1M ($dir/home/.nccl.conf:4)"
out "NCCL_BUFSIZE ($dir/home/.nccl.conf:5): unknown, no effect; did you mean NCCL_BUFFSIZE?"
out "$dir/home/.nccl.conf:3 is not NAME=VALUE; the line is left out"
run 1 "--set" NCCL_CONF_FILE="$dir/none"
out "$dir/none cannot be read; no setting is taken from it"
no NCCL_BUFFSIZE
rm "$dir/home/.nccl.conf"

run 0 "--set" KOLO_SECRET=swordfish
out "  KOLO_SECRET = (set) (environment)"
no swordfish
run 0 "--json" KOLO_SECRET=swordfish
no swordfish
key=00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff
for name in KOLO_COMM_ID NCCL_COMM_ID; do
    run 0 "--set" $name=$key$key$key$key
    out "  $name = (set) (environment)"
    no $key
    run 0 "--json" $name=$key$key$key$key
    no $key
    run 0 "--set" $name=node7:4711
    out "  $name = node7:4711 (environment)"
done
run 0 "NCCL_ALGO" NCCL_ALGO="$(printf 'a\033[2Jb')"
out "  NCCL_ALGO = a?[2Jb (environment)"

run 1 "--json" NCCL_ALGO="$(printf 'a\377')" NCCL_BUFSIZE=1 NCCL_DEBUG=LOUD NCCL_IB_ECE_ENABLE=x
if command -v python3 >/dev/null; then
    python3 - "$dir/out" >"$dir/err" 2>&1 <<'PY' || fail "wrong JSON"
import json, sys
d = json.load(open(sys.argv[1]))
row = {r["name"]: r for r in d["parameters"]}
assert row["NCCL_ALGO"]["value"] == "a?" and row["NCCL_ALGO"]["state"] == "set"
assert row["NCCL_DEBUG"]["state"] == "refused" and row["NCCL_DEBUG"]["refused"] == "LOUD"
assert row["NCCL_DEBUG"]["value"] == "NONE" and row["NCCL_DEBUG"]["choices"][2] == "WARN"
assert row["NCCL_BUFFSIZE"]["max"] == 1 << 30 and row["NCCL_BUFFSIZE"]["source"] is None
assert row["NCCL_BUFFSIZE"]["module"] == "comm" and row["NCCL_BUFFSIZE"]["type"] == "size"
assert d["unknown"] == [{"name": "NCCL_BUFSIZE", "source": "environment", "nearest": "NCCL_BUFFSIZE"}]
assert d["others"] == [{"name": "NCCL_IB_ECE_ENABLE", "source": "environment", "note": None}]
assert d["problems"] == []
PY
fi

run 0 "--markdown" NCCL_DEBUG=INFO
cmp -s "$dir/out" "$source/docs/env.md" || {
    diff "$dir/out" "$source/docs/env.md" | head -20
    echo "docs/env.md differs from the output of \`kolo env --markdown\`; write it again"
    bad=1
}
exit $bad

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kolo run, as a user sees it: usage, environment, output, and how jobs end.
# shellcheck disable=SC2016 # texts in single quotes are for the shells of the ranks
set -u
kolo=$KOLO_BUILD/kolo
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# shellcheck source=tests/cli/expect.sh
. "${0%/*}/expect.sh"
[ -x "$kolo" ] || { echo "there is no $kolo" && exit 1; }

# run EXIT_CODE ARGUMENTS...: `kolo run ARGUMENTS`, nothing on stdin.
run() {
    want=$1
    shift
    what="kolo run $*"
    timeout "${TEST_HANG_S:-900}" "$kolo" run "$@" >"$dir/out" 2>"$dir/err" </dev/null
    got=$?
    [ $got -eq "$want" ] || fail "exit code $got, not $want"
}

# await_lines N: a job in the background has written so many.
await_lines() {
    tries=0
    until [ "$(wc -l <"$dir/out")" -ge "$1" ] || [ $tries -eq 1000 ]; do
        tries=$((tries + 1))
        sleep 0.02
    done
    lines out "$1"
}

# gone PIDS...: none of these lives on (a zombie that its new parent has not fetched yet is dead).
gone() {
    for pid in "$@"; do
        tries=0
        while grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$pid/status"; do
            tries=$((tries + 1))
            [ $tries -lt 500 ] || { fail "process $pid lives on" && return; }
            sleep 0.02
        done
    done
}

# Wrong usage: one line, which names the remedy.
for arguments in "" "-n 0 true" "-n 2" "true" "-n 3 --hosts 2 true" "-n 2 --frob true" "-n 2 --grace x true"; do
    # shellcheck disable=SC2086 # words
    run 2 $arguments
    lines err 1
    lines out 0
done
run 127 -n 2 no-such-program
err 'kolo run: there is no program "no-such-program"'
lines err 1
touch "$dir/text"
run 126 -n 2 "$dir/text"
err "kolo run: \"$dir/text\" is not executable: see \`chmod +x\`"
lines err 1
run 126 -n 2 "$dir"
lines err 1
printf '#!/no/such/shell\n' >"$dir/script"
chmod +x "$dir/script"
run 127 -n 1 "$dir/script"
grep -q "starting $dir/script: the interpreter" "$dir/err" || fail "no word of the interpreter"
run 1 -n 2 --topo /no/such/file.xml true
lines err 1
run 0 --help
out "usage: kolo run -n N [options] [--] PROGRAM [ARGUMENTS]"

# A good job is silent; `--` and options of the program's own.
run 0 -n 3 true
lines err 0
# More ranks than CPUs: all of them on all, or each on one in turn, so that the first and the last share one.
cpus=$(env -u OMP_NUM_THREADS nproc)
cpus_of_ranks='echo "$RANK $(env -u OMP_NUM_THREADS nproc) $(grep Cpus_allowed_list /proc/self/status)"'
run 0 -n $((cpus + 1)) -- sh -c "$cpus_of_ranks"
[ "$(cut -d' ' -f2 "$dir/out" | sort -u)" = "$cpus" ] || fail "ranks are bound"
run 0 -n $((cpus + 1)) --bind -- sh -c "$cpus_of_ranks"
[ "$(cut -d' ' -f2 "$dir/out" | sort -u)" = 1 ] || fail "ranks are not bound"
[ "$(sort -n "$dir/out" | sed -n '1p;$p' | sed 's/.*list//' | sort -u | wc -l)" -eq 1 ] || fail "not in turn"
run 2 -n 2 --bind --no-bind true
err "kolo run: --bind and --no-bind exclude each other"
run 0 -n 2 -- sh -c 'echo "$0 $1"' -n word
out "-n word"

# Every rank knows its place.
run 0 -n 4 --hosts 2 --tag -- sh -c 'echo $KOLO_RANK/$KOLO_SIZE $KOLO_LOCAL_RANK/$KOLO_LOCAL_SIZE $RANK/$WORLD_SIZE \
$LOCAL_RANK/$LOCAL_WORLD_SIZE ${#KOLO_COMM_ID} ${NCCL_HOSTID##*-} ${MASTER_ADDR:+addr} ${MASTER_PORT:+port}'
out "[0] 0/4 0/2 0/4 0/2 256 0 addr port"
out "[1] 1/4 1/2 1/4 1/2 256 0 addr port"
out "[2] 2/4 0/2 2/4 0/2 256 1 addr port"
out "[3] 3/4 1/2 3/4 1/2 256 1 addr port"
echo "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x030200\"><gpu dev=\"0\" sm=\"80\"/></pci></cpu></system>" >"$dir/machine.xml"
run 0 -n 2 --topo "$dir/machine.xml" -- sh -c 'cd / && cat "$NCCL_TOPO_FILE"'
out "$(cat "$dir/machine.xml")"

# Streams stay apart; rank 0 reads.
run 0 -n 2 -- sh -c 'echo to out; echo to err >&2'
lines out 2
lines err 2
echo word | timeout "${TEST_HANG_S:-900}" "$kolo" run -n 3 --tag cat >"$dir/out" 2>"$dir/err"
what="kolo run --tag cat"
out "[0] word"
lines out 1

# Without /proc, where that can be tried. A sanitizer looks there itself.
what="kolo run without /proc"
if [ -n "${1:-}" ]; then
    echo "/proc is left to a build without sanitizers"
elif unshare -m umount -l /proc 2>/dev/null; then
    unshare -m sh -c "umount -l /proc && exec timeout ${TEST_HANG_S:-900} $kolo run -n 2 true" >"$dir/out" 2>"$dir/err"
    [ $? -eq 1 ] || fail "not exit code 1"
    err "kolo run: starting processes: there is no /proc/self/exe here: mount /proc (mount -t proc proc /proc)"
    lines err 1
else
    echo "/proc cannot be taken away here"
fi

# Limits of the process: an error that names the limit, in every rank, and not the death of one. A sanitizer's stacks are larger.
if [ -z "${1:-}" ]; then
    for limit in "s 64" "f 0"; do
        what="kolo run with ulimit -$limit"
        # shellcheck disable=SC2086 # words
        (ulimit -$limit && exec timeout "${TEST_HANG_S:-900}" "$kolo" run -n 2 -- "$kolo" perf barrier) 2>&1 | cat >"$dir/err"
        [ "$(grep -c "joining the communicator: .* raise \`ulimit -${limit% *}\`" "$dir/err")" -eq 2 ] || fail "ranks do not name the limit"
        grep -q "signal" "$dir/err" && fail "a rank died"
    done
fi

# The job's key appears nowhere in a job's output, however verbose it is.
run 0 -n 2 -- env NCCL_DEBUG=TRACE NCCL_DEBUG_SUBSYS=ALL "$kolo" perf all_reduce -b 8 -e 8 -n 1
grep -q "KOLO_COMM_ID set by environment to (set)" "$dir/out" || fail "no line about KOLO_COMM_ID"
! grep -qE '[0-9a-f]{64}' "$dir/out" "$dir/err" || fail "a key"

# A death: announced, and reported for every rank.
run 137 -n 3 --grace 0.2 -- sh -c 'test $RANK = 1 && kill -9 $$; exec sleep 1000'
err "kolo run: rank 1: signal 9 (Killed), by itself; the others have 0.2 s to end"
err "kolo run: rank 0: signal 15 (Terminated), sent by kolo run"
err "kolo run: rank 1: signal 9 (Killed), by itself"
err "kolo run: rank 2: signal 15 (Terminated), sent by kolo run"
run 7 -n 2 --grace 0 -- sh -c 'test $RANK = 0 || exit 7; exec sleep 1000'
err "kolo run: rank 1: exit code 7, by itself"
run 3 -n 2 --grace 0.2 -- sh -c 'test $RANK = 1 || { until test -d "$0"; do sleep 0.01; done; exit 3; }
trap "exit 4" TERM; mkdir "$0"; while :; do sleep 0.01; done' "$dir/ready"
err "kolo run: rank 0: exit code 3, by itself"
err "kolo run: rank 1: exit code 4, after kolo run sent signal 15 (Terminated)"
run 1 -n 2 --timeout 0.2 sleep 1000
err "kolo run: not finished after 0.2 s"

# A rank that ends well when it is told to, and says so once, however often it is told: a trap can be begun again within itself
# (timeout passes a signal on to its program and to its group, so to kolo run twice). The awaited program is started before the trap
# is set: a shell's child can have the shell's traps until it runs its program.
ends_well='sleep 1000 & trap "trap \"\" TERM; echo terminated; exit 0" TERM; echo ready; while :; do wait; done'

# Signals are passed on.
: >"$dir/out"
timeout "${TEST_HANG_S:-900}" "$kolo" run -n 2 -- sh -c "$ends_well" >"$dir/out" 2>"$dir/err" &
launcher=$!
what="kolo run, terminated"
await_lines 2
kill -TERM $launcher
wait $launcher || fail "ranks that ended well are no failure"
lines out 4
out terminated

# However often they come, and however late.
: >"$dir/out"
"$kolo" run -n 2 -- sh -c "$ends_well" >"$dir/out" 2>"$dir/err" &
launcher=$!
what="kolo run, terminated again and again"
await_lines 2
while kill -TERM $launcher 2>/dev/null; do :; done
wait $launcher || fail "ranks that ended well are no failure"

# Nothing outlives the launcher: neither ranks, nor their children.
: >"$dir/out"
"$kolo" run -n 2 -- sh -c 'sleep 1000 & echo $$ $!; wait' >"$dir/out" 2>"$dir/err" &
launcher=$!
what="kolo run, killed"
await_lines 2
kill -KILL $launcher
wait $launcher 2>/dev/null
# shellcheck disable=SC2046 # words
gone $(cat "$dir/out")

# Hosts of one NVLink domain.
two=$(dirname "$0")/../data/examples/two-hosts.xml
timeout "${TEST_HANG_S:-900}" "$kolo" run -n 4 --hosts 4 --topo "$two" -- sh -c 'echo $KOLO_RANK $KOLO_MNNVL' >"$dir/out" 2>"$dir/err"
what="kolo run --hosts 4 --topo two-hosts.xml"
for line in "0 1" "1 1" "2 2" "3 2"; do out "$line"; done
timeout "${TEST_HANG_S:-900}" "$kolo" run -n 3 --hosts 3 --topo "$two" -- true >"$dir/out" 2>"$dir/err" && fail "no complaint"
lines err 1
grep -q "holds 2 hosts, so there can be 1, 2, or a multiple of them, but not 3" "$dir/err" || fail "another reason"
for mnnvl in 0 1; do
    [ $mnnvl -eq 1 ] && two=$(dirname "$0")/../data/examples/nvswitch.xml
    KOLO_MNNVL=$mnnvl timeout "${TEST_HANG_S:-900}" "$kolo" run -n 2 --hosts 2 --netns --topo "$two" -- true >"$dir/out" 2>"$dir/err" && fail "no complaint"
    lines err 1
    grep -q -- "--netns: hosts of one NVLink domain .* share memory" "$dir/err" || fail "another reason"
done

# Ranks choose by the profile of the first one that they share memory with: the hosts of a domain by one, other hosts by one each.
for mnnvl in 0 1; do
    KOLO_MNNVL=$mnnvl NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT timeout "${TEST_HANG_S:-900}" "$kolo" perf all_reduce -b 8 -e 8 -n 1 -w 0 --np 8 --hosts 2 --topo "$(dirname "$0")/../data/topologies/synthetic/gb200-4gpu-4nic.xml" >"$dir/out" 2>&1 ||
        fail "kolo perf --hosts 2: $(cat "$dir/out")"
    [ "$(grep -c "machine profile: " "$dir/out")" -eq $((2 - mnnvl)) ] || fail "KOLO_MNNVL=$mnnvl: another number of profiles: $(cat "$dir/out")"
done

# Network namespaces, where they can be made.
timeout "${TEST_HANG_S:-900}" "$kolo" run -n 2 --hosts 2 --netns --tag -- sh -c 'echo $(grep -c kolo0 /proc/net/dev) $MASTER_ADDR' \
    >"$dir/out" 2>"$dir/err"
what="kolo run --netns"
if grep -q "not permitted\|not supported" "$dir/err"; then
    lines err 1
    echo "no network namespaces here: $(cat "$dir/err")"
else
    out "[0] 1 10.77.0.1"
    out "[1] 1 10.77.0.1"
    lines err 0
fi

# Faults are injected into ranks, not into the launcher that ends hanging ranks.
export KOLO_CHAOS=1:stop@1
run 0 -n 2 -- true
unset KOLO_CHAOS
lines err 0

exit $bad

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kolo perf, as a user sees it: usage, the table, every collective and layout, and the reports when results are wrong or
# ranks do not come back.
set -u
kolo=$KOLO_BUILD/kolo faulty=$KOLO_BUILD/bin/kolo_faulty
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
unset NCCL_TESTS_MIN_BW
# shellcheck source=tests/cli/expect.sh
. "${0%/*}/expect.sh"
[ -x "$kolo" ] || { echo "there is no $kolo" && exit 1; }

# perf EXIT_CODE ARGUMENTS...: `kolo perf ARGUMENTS`.
perf() {
    want=$1
    shift
    what="kolo perf $*"
    timeout "${TEST_HANG_S:-900}" "$kolo" perf "$@" >"$dir/out" 2>"$dir/err"
    got=$?
    [ $got -eq "$want" ] || fail "exit code $got, not $want"
}

# small EXIT_CODE ARGUMENTS...: the same with few iterations.
small() {
    code=$1
    shift
    perf "$code" "$@" -n 2
}

# rows N: so many rows, each with 13 columns, and numbers where numbers belong.
rows() {
    awk -v want="$1" '
        /^#/ { next }
        { n++ }
        NF != 13 { print "a row of " NF " columns"; bad = 1 }
        $6 !~ /^[0-9.]+$/ || $8 !~ /^[0-9.]+$/ || $9 !~ /^([0-9.e+]+|N\/A)$/ { print "not numbers: " $0; bad = 1 }
        END { if (n != want) { print n + 0 " rows, not " want; bad = 1 }; exit bad }
    ' "$dir/out" || fail "a table of another shape"
}

fine() {
    rows "$1"
    out "# Out of bounds values : 0 OK"
    says out "# Avg bus bandwidth    : "
    lines err 0
}

# ---- all ranks in this process, as threads and devices ----

export KOLO_RANK=0 KOLO_SIZE=1
for layout in "-t 4" "-g 4 -p 1" "-t 2 -g 2" "-t 2 -g 2 -p 1 -I" "-t 4 --inline" "-t 4 -T 100"; do
    for collective in all_reduce all_gather reduce_scatter broadcast reduce gather scatter hypercube barrier; do
        case "${1-}:$layout:$collective" in
        address*:all_reduce | address*":-t 2 -g 2:"*) ;;
        address*) continue ;; # AddressSanitizer sees each layout and each collective once
        esac
        # shellcheck disable=SC2086 # words
        small 0 $collective -b 4K -e 4K $layout
        says out "#  Rank  3 "
        out "# Out of bounds values : 0 OK"
        lines err 0
    done
done
unset KOLO_RANK KOLO_SIZE
if [ "${1-}" = thread ]; then
    echo "the rest was skipped: ThreadSanitizer does not see how processes synchronise through shared memory"
    exit $bad
fi

# ---- usage ----

for arguments in "" "allreduced" "all_reduce -d floaty" "all_reduce -o x" "all_reduce -b 2" "all_reduce -b 64M" \
    "all_reduce --np 3 --hosts 2" "all_reduce -R 3" "all_reduce -G -1" "all_reduce -G 1 -z 1" "all_reduce -x 1" "all_reduce -D 1" "all_reduce -V 1" \
    "all_reduce -q" "reduce --np 2 -r 2" "hypercube --np 3" "all_reduce -n" "all_reduce reduce"; do
    # shellcheck disable=SC2086 # words
    perf 2 $arguments
    lines err 1
    lines out 0
done
# Buffers that all ranks can map are worked in where they lie; ordinary ones of processes are not.
export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING NCCL_DEBUG_FILE="$dir/tuning"
for ways in "1 --np 2" "2 --np 2" "1 --np 2 -t 2" "2 --np 2 -g 2" "0 --np 1 -t 2"; do
    # shellcheck disable=SC2086 # words
    perf 0 all_reduce -R $ways -b 1M -e 1M -n 3 -w 1
    grep -q "done in the ranks' own buffers (Mapped" "$dir/tuning" || fail "-R $ways: not in the ranks' own buffers"
    grep -q "not all ranks can map" "$dir/tuning" && fail "-R $ways: some rank declined"
    rm -f "$dir/tuning"
done
perf 0 all_reduce --np 2 -b 1M -e 1M -n 3 -w 1
grep -q "not all ranks can map" "$dir/tuning" || fail "ordinary buffers were mapped"
unset NCCL_DEBUG NCCL_DEBUG_SUBSYS NCCL_DEBUG_FILE

perf 1 all_reduce --topo /no/such/file.xml
lines err 1
perf 1 all_reduce -J /no/such/folder/file.json
lines err 1
perf 0 --help
out "usage: kolo perf COLLECTIVE [options]"

# ---- the table ----

small 0 all_reduce -b 8 -e 1K -f 4
fine 4
says out "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 4(factor) warmup iters: 1 iters: 2 agg iters: 1 validation: 1 graph: 0"
says out "#  Rank  0 Group  0 Pid "
says out "#  Rank  1 Group  0 Pid "
out "#                                                              out-of-place                       in-place          "
out "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
out "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       "
says out "         512           128     float     sum      -1 "
small 0 all_gather -b 1K -e 4K -i 1K --np 3
fine 4
says out "        1008            84     float    none      -1 " # pieces of whole 16 bytes
small 0 reduce -b 64 -e 64 -r all --np 3
fine 3
small 0 broadcast -b 64 -e 64 -d all
fine 12
small 0 all_reduce -b 64 -e 64 -d all -o all --np 3
fine 60
small 0 sendrecv -b 64 -e 64
fine 1
says out "N/A" # not in place
perf 0 all_reduce -b 64 -e 64 -n 3 -I
says out "i_min    i_max    i_p99   i_cv%"
perf 0 all_reduce -b 64 -e 64 -n 2 -c 0
says out "N/A"

# ---- every collective, every layout ----

for collective in all_reduce all_gather reduce_scatter broadcast reduce alltoall alltoallv gather scatter sendrecv \
    hypercube; do
    small 0 $collective --np 4 -b 64 -e 100000 -f 33
    fine 3
done
perf 0 barrier -n 2
fine 1
for layout in "--np 1" "--np 1 -t 4" "--np 2 -t 2" "--np 1 -g 2" "--np 2 -g 2 -p 1" "--np 1 -t 2 -g 2 -p 1" "--np 2 --inline" \
    "--np 3 -u 1" "--np 2 -m 4" "--np 2 -z 1" "--np 2 -z 2" "--np 2 -z 3" "--np 2 -y 1" "--np 2 -G 2" \
    "--np 1 -t 2 -g 2 -G 3 -m 2" "--np 2 -a max" "--np 2 -C 1" "--np 2 -N 1 -w 0"; do
    # shellcheck disable=SC2086 # words
    small 0 all_reduce -b 4K -e 4K $layout
    fine 1
done
perf 0 all_reduce -b 8 -e 8 -n 1 -N 3
fine 3

# ---- JSON, and the least bandwidth ----

export NCCL_P2P_LEVEL=SYS KOLO_SECRET=swordfish KOLO_SECERT=pike # the last one is a mistake of spelling
perf 0 all_reduce -b 64 -e 256 -f 2 -n 5 -I -J "$dir/file.json"
unset NCCL_P2P_LEVEL KOLO_SECRET KOLO_SECERT
if command -v python3 >/dev/null; then
    python3 - "$dir/file.json" <<'END' || fail "a JSON file of another shape"
import json, sys
d = json.load(open(sys.argv[1]))
assert d["nccl_version"] == 23203 and d["out_of_bounds"] == {"count": 0, "okay": True}, d
assert d["average_bus_bandwidth"]["okay"] == "unchecked" and d["config"]["iterations"] == 5
assert [x["rank"] for x in d["devices"]] == [0, 1] and d["args"][0] == "all_reduce"
assert [(r["size"], r["count"], r["type"], r["redop"]) for r in d["results"]] == \
    [(64, 16, "float", "sum"), (128, 32, "float", "sum"), (256, 64, "float", "sum")]
half = d["results"][0]["in_place"]
assert half["nwrong"] == 0 and half["time"] > 0 and len(half["per_iteration"]["times_us"]) == 5
assert "NCCL_P2P_LEVEL=SYS" in d["env"] and not any(x in e for e in d["env"] for x in ("COMM_ID", "fish", "pike"))
END
fi
export NCCL_TESTS_MIN_BW=1e9
small 1 all_reduce -b 64 -e 64
says out " FAILED"
NCCL_TESTS_MIN_BW=0
small 0 all_reduce -b 64 -e 64
says out " OK"
unset NCCL_TESTS_MIN_BW

# ---- in a job that something else started ----

what="kolo run -- kolo perf"
timeout "${TEST_HANG_S:-900}" "$kolo" run -n 2 -- "$kolo" perf all_gather -b 64 -e 64 -n 2 -t 2 >"$dir/out" 2>"$dir/err" || fail "exit code $?"
fine 1
says out "#  Rank  3 "
timeout "${TEST_HANG_S:-900}" "$kolo" run -n 2 -- "$kolo" perf all_gather -b 64 -e 64 --hosts 2 >"$dir/out" 2>"$dir/err" && fail "no complaint"
says err "--hosts, --netns, --topo and --machine are for processes started here"
free_port() {
    python3 "${0%/*}/../ports.py"
}
what="two kolo perf that meet at the place in a configuration file"
echo "KOLO_COMM_ID=127.0.0.1:$(free_port)" >"$dir/nccl.conf"
export NCCL_CONF_FILE="$dir/nccl.conf" KOLO_SIZE=2 KOLO_LOCAL_SIZE=2 KOLO_SECRET=swordfish
KOLO_RANK=1 timeout "${TEST_HANG_S:-900}" "$kolo" perf all_reduce -b 64 -e 64 -n 2 >/dev/null 2>&1 &
KOLO_RANK=0 timeout "${TEST_HANG_S:-900}" "$kolo" perf all_reduce -b 64 -e 64 -n 2 >"$dir/out" 2>"$dir/err" || fail "exit code $?"
wait $!
fine 1
says out "#  Rank  1 "
unset NCCL_CONF_FILE KOLO_SIZE KOLO_LOCAL_SIZE KOLO_SECRET
# Ranks of one host find each other, and a setting names the place where ranks of several hosts meet.
for launcher in "mpirun.openmpi --oversubscribe" mpirun.mpich; do
    for meet in "" "127.0.0.1:$(free_port)"; do
        command -v ${launcher%% *} >/dev/null || continue
        what="${meet:+KOLO_COMM_ID=$meet }$launcher kolo perf"
        # shellcheck disable=SC2086 # words
        env ${meet:+KOLO_COMM_ID=$meet} OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
            timeout "${TEST_HANG_S:-900}" $launcher -np 3 "$kolo" perf all_reduce -b 64 -e 64 -n 2 >"$dir/out" 2>"$dir/err"
        if grep -q "# Using devices" "$dir/out" || ! grep -qi "orte\|prte\|hydra" "$dir/err"; then
            says out "#  Rank  2 "
            out "# Out of bounds values : 0 OK"
        else
            echo "$launcher does not work here: $(head -1 "$dir/err")"
        fi
    done
done
what="ranks of a launcher, one of which never comes"
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 KOLO_BOOTSTRAP_TIMEOUT=1 timeout "${TEST_HANG_S:-900}" \
    "$kolo" perf all_reduce -b 64 -e 64 >"$dir/out" 2>"$dir/err" && fail "no complaint"
says err "rank 1 did not hear from rank 0 on this host within 1 s"

what="ranks of torchrun, whose agent holds the master's port"
python3 - "$kolo" "${0%/*}/.." <<'END' >"$dir/out" 2>"$dir/err" || fail "the ranks did not meet"
import os, socket, subprocess, sys
sys.path.insert(0, sys.argv[2])
import ports
port = ports.free_port(2)
agent = socket.create_server(("127.0.0.1", port))
at = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True",
      "KOLO_BOOTSTRAP_TIMEOUT": "30"}
ranks = [subprocess.Popen([sys.argv[1], "perf", "all_reduce", "-b", "64", "-e", "64", "-n", "1"], env={**at, "RANK": str(r)}) for r in (0, 1)]
sys.exit(any([r.wait() for r in ranks]))
END
out "# Out of bounds values : 0 OK"

# ---- a library that errs ----

# wrong FAULT: two sizes of all_reduce on three ranks.
wrong() {
    what="FAULT=$1 kolo perf"
    FAULT=$1 timeout "${TEST_HANG_S:-900}" "$faulty" perf all_reduce --np 3 -b 8 -e 128 -f 16 -n 1 >"$dir/out" 2>"$dir/err"
    got=$?
    [ $got -eq 1 ] || fail "exit code $got, not 1"
}
wrong absent:1
out "# Out of bounds values : 204 FAILED" # all elements of two sizes, twice, on three ranks
says err "kolo perf: rank 2: all_reduce of 128 bytes of float, sum, in-place: element 0 is "
wrong spoil:2
out "# Out of bounds values : 4 FAILED"
says err "kolo perf: rank 2: all_reduce of 8 bytes of float, sum, out-of-place: element 0 is "
says err "(1 wrong)"
wrong overrun:0
says err "bytes behind the receive buffer were written"

# Joining may take longer than that beside other programs, but not far longer.
what="FAULT=hang:1 kolo perf -T"
for timeout_s in 3 20 150; do
    FAULT=hang:1 timeout "${TEST_HANG_S:-900}" "$faulty" perf all_reduce --np 3 -b 64 -e 64 -n 1 -T $timeout_s >"$dir/out" 2>"$dir/err" && fail "exit code 0"
    grep -q "stuck for .* s: joining" "$dir/err" || break
done
says err "kolo perf: stuck for $timeout_s s: all_reduce of 64 bytes of float, "
says err "kolo perf: rank 1: signal 15 (Terminated), sent by kolo perf"
what="FAULT=hang:1 kolo run -- kolo perf -T"
for timeout_s in 3 20 150; do
    FAULT=hang:1 timeout "${TEST_HANG_S:-900}" "$kolo" run -n 2 --grace 1 -- "$faulty" perf all_reduce -b 64 -e 64 -n 1 -T $timeout_s \
        >"$dir/out" 2>"$dir/err" && fail "exit code 0"
    grep -q "stuck for .* s: joining" "$dir/err" || break
done
says err "kolo perf: stuck for $timeout_s s: all_reduce of 64 bytes of float, "
says err "not finished by rank 1"

# ---- containers of one host ----

# Each is a machine of its own, with its own CPUs, and in one of them ranks share these.
cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
first=${cpus%%[-,]*} last=${cpus##*[-,]}
if [ "$first" != "$last" ] && taskset -c "$first" unshare --uts true 2>"$dir/err"; then
    export first last KOLO_TIMEOUT=20 NCCL_HOSTID=both
    what="kolo perf in two containers"
    # shellcheck disable=SC2016 # for the shells of the ranks
    timeout "${TEST_HANG_S:-900}" "$kolo" run -n 4 -- unshare --uts sh -c 'hostname "box$((KOLO_RANK / 3))" && test "$KOLO_RANK" = 3 || last=$first
        exec taskset -c "$last" "$0" perf all_reduce -b 8 -e 8 -n 20' "$kolo" >"$dir/out" 2>"$dir/err" || fail "exit code $?"
    says out " on       both device  3 "
    out "# Out of bounds values : 0 OK"
    unset KOLO_TIMEOUT NCCL_HOSTID
else
    echo "containers of one host were skipped: they take two CPUs, taskset, and a right to new UTS namespaces"
fi

exit $bad

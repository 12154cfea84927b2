#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All-reduce of floats between two hosts, which are two network namespaces joined by a veth pair, with a rank in each: Kolo in plain
# and with KOLO_NET_CRYPT=1, beside bare TCP and the installed ones of Open MPI, MPICH and gloo, interleaved in rounds.
# Medians and spread. After bare TCP, each with its fraction of TCP's speed; then Kolo beside the fastest peer.
#
# Usage: bench/hosts.sh [ROUNDS]     needs root and build/release; peers: Debian's openmpi-bin libopenmpi-dev, mpich libmpich-dev,
#        SIZES="8:20000 1048576:200"  libgloo-dev. SIZES are BYTES:ITERATIONS.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "${KOLO_BUILD:-build/release}") rounds=${1:-5}
sizes=${SIZES:-8:20000 128:20000 4096:5000 65536:1000 1048576:100 16777216:8 67108864:3}
kolo=$build/kolo exchange=$build/bin/tcp_exchange
work=$(mktemp -d) a=kolo$$a b=kolo$$b
port=29501

clean() {
    ip netns del $a 2>/dev/null || true
    ip netns del $b 2>/dev/null || true
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

ip netns add $a && ip netns add $b || {
    echo "no network namespaces here: root may make them"
    exit 1
}
ip link add eth0 netns $a type veth peer name eth0 netns $b
for host in $a:1 $b:2; do
    ip -n "${host%:*}" link set lo up
    ip -n "${host%:*}" addr add "10.99.0.${host#*:}/24" dev eth0
    ip -n "${host%:*}" link set eth0 up
done

# A command in one of the namespaces, with a host name of its own. mpirun calls it as it would call ssh.
cat >"$work/at" <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1
shift
case \$host in 10.99.0.1) ns=$a ;; *) ns=$b ;; esac
exec ip netns exec \$ns unshare -u sh -c "hostname \$ns; exec sh -c '\$*'"
END
chmod +x "$work/at"

both() { # both NAME COMMAND...: as ranks 0 and 1; rank 0's output is kept
    name=$1
    shift
    "$work/at" 10.99.0.2 "RANK=1 SIZE=2 $*" >/dev/null &
    "$work/at" 10.99.0.1 "RANK=0 SIZE=2 $*" >>"$work/$name"
    wait $!
}

measure_kolo() { # measure_kolo NAME SETTINGS
    for c in $sizes; do
        port=$((port + 1))
        : >"$work/table"
        common="KOLO_COMM_ID=10.99.0.1:$port KOLO_SECRET=bench KOLO_SIZE=2 NCCL_SOCKET_IFNAME=eth0 $2"
        command="$kolo perf all_reduce -b ${c%:*} -e ${c%:*} -n ${c#*:} -w 5 -c 0 -a max"
        "$work/at" 10.99.0.2 "KOLO_RANK=1 $common $command" >/dev/null &
        "$work/at" 10.99.0.1 "KOLO_RANK=0 $common $command" >"$work/table"
        wait $!
        echo "${c%:*} $(awk '!/^#/ && NF > 6 { print $6; exit }' "$work/table")" >>"$work/$1"
    done
}

measure_tcp() {
    port=$((port + 1))
    both tcp "ADDRESS=10.99.0.1 PORT=$port $exchange $sizes"
}

measure_gloo() {
    rm -rf "$work/store" && mkdir "$work/store"
    "$work/at" 10.99.0.2 "RANK=1 SIZE=2 ADDRESS=10.99.0.2 STORE=$work/store $work/bench-gloo $sizes" >/dev/null &
    "$work/at" 10.99.0.1 "RANK=0 SIZE=2 ADDRESS=10.99.0.1 STORE=$work/store $work/bench-gloo $sizes" >>"$work/gloo"
    wait $!
}

measure_openmpi() {
    "$work/at" 10.99.0.1 "mpirun.openmpi --allow-run-as-root --mca plm_rsh_agent $work/at --mca oob_tcp_if_include eth0 \
        --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include eth0 -host 10.99.0.1:1,10.99.0.2:1 -np 2 --bind-to none \
        $work/bench-openmpi $sizes" >>"$work/openmpi"
}

measure_mpich() {
    "$work/at" 10.99.0.1 "UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 mpirun.mpich -launcher ssh -launcher-exec $work/at -iface eth0 \
        -hosts 10.99.0.1,10.99.0.2 -ppn 1 -np 2 $work/bench-mpich $sizes" >>"$work/mpich"
}

names="tcp kolo kolo-crypt" peers=""
for mpi in openmpi mpich; do
    command -v mpicc.$mpi >/dev/null && mpicc.$mpi -O2 bench/mpi_allreduce.c -o "$work/bench-$mpi" && peers="$peers $mpi"
done
if [ -e /usr/include/gloo/allreduce.h ]; then
    c++ -O2 -std=c++17 bench/gloo_allreduce.cc -o "$work/bench-gloo" -lgloo -lpthread && peers="$peers gloo"
fi
[ -n "$peers" ] || echo "# neither Open MPI nor MPICH nor gloo is installed: no peer"

for round in $(seq "$rounds"); do
    echo "# round $round of $rounds" >&2
    measure_tcp
    measure_kolo kolo ""
    measure_kolo kolo-crypt KOLO_NET_CRYPT=1
    for peer in $peers; do measure_"$peer" || true; done
done

of() { # of NAME BYTES: "median least most"
    awk -v b="$2" '$1 == b { print $2 }' "$work/$1" 2>/dev/null | sort -n |
        awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)], v[1], v[NR] }'
}

printf '# %s rounds; us: median (least-most) part of the speed of bare TCP\n%-10s' "$rounds" bytes
for n in $names $peers; do printf '%-34s' "$n"; done
echo "kolo / fastest peer: below 1 is faster"
for c in $sizes; do
    bytes=${c%:*} best=
    tcp=$(of tcp "$bytes" | cut -d' ' -f1)
    printf '%-10s' "$bytes"
    for n in $names $peers; do
        figures=$(of "$n" "$bytes")
        printf '%-34s' "$(echo "$figures" | awk -v tcp="$tcp" 'NF { printf "%.2f (%.2f-%.2f) %.2f", $1, $2, $3, tcp / $1 }')"
        case " $peers " in *" $n "*) best=$(echo "$best ${figures%% *}" | tr ' ' '\n' | grep . | sort -n | head -1) ;; esac
    done
    [ -z "$best" ] || of kolo "$bytes" | awk -v best="$best" '{ printf "%.2f", $1 / best }'
    echo
done

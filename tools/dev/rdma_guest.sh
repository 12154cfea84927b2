#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# rdma_guest.sh - the first process of rdma.sh's virtual machines: makes a Soft-RoCE device, runs the checks, and turns the machine off.
#
# The kernel's command line says which machine this is: kolo=one, alone; kolo=left or kolo=right, two with a wire between them.
# Each check is a line, RDMA-OK or RDMA-FAILED, its name, and the seconds that it took; of a failed one the end of its output follows, RDMA-OUT.
/bin/busybox mkdir -p /sbin /usr/bin /usr/sbin
/bin/busybox --install -s 2>/dev/null
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/tmp
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
mkdir -p /dev/shm; mount -t tmpfs shm /dev/shm
me=$(sed 's/.*kolo=\([a-z]*\).*/\1/' /proc/cmdline)

collectives="all_reduce all_gather reduce_scatter broadcast reduce alltoall alltoallv gather scatter sendrecv barrier"

clock() { # now: hundredths of a second
    read -r now rest </proc/uptime
    now=${now%.*}${now#*.}
}

took() { # took SINCE: seconds, with two digits
    clock
    printf '%d.%02d s' $(((now - $1) / 100)) $(((now - $1) % 100))
}

result() { # result RC NAME SINCE
    if [ "$1" -eq 0 ]; then echo "RDMA-OK $2: $(took "$3")"; else echo "RDMA-FAILED $2: $(took "$3")"; tail -n 25 /tmp/out | sed 's/^/RDMA-OUT /'; fi
}

check() { # check NAME COMMAND...: it ends well
    local name=$1 began
    shift
    clock
    began=$now
    "$@" >/tmp/out 2>&1
    result $? "$name" "$began"
}

says() { # says NAME TEXT COMMAND...: it fails, and says this
    local name=$1 text=$2 began
    shift 2
    clock
    began=$now
    if "$@" >/tmp/out 2>&1; then rc=1; else grep -q "$text" /tmp/out; rc=$?; fi
    result "$rc" "$name" "$began"
    grep -m 1 "$text" /tmp/out | sed 's/^/RDMA-SAID /'
}

shows() { # shows NAME TEXT COMMAND...: it ends well, and says this
    local name=$1 text=$2 began
    shift 2
    clock
    began=$now
    "$@" >/tmp/out 2>&1 && grep -q "$text" /tmp/out
    result $? "$name" "$began"
    grep "$text" /tmp/out | sed 's/^/RDMA-SAID /'
}

last_time() { # the time of the largest size, in microseconds
    awk '$1 ~ /^[0-9]+$/ { time = $6 } END { print time }' /tmp/out
}

load_modules() {
    for module in $(cat /lib/modules/order); do
        insmod "/lib/modules/$module" || echo "RDMA-FAILED module $module"
    done
}

# ---- one machine: the ranks share its device ----

perf() { # perf NET NAME RANKS HOSTS SIZES...
    local net=$1 name=$2 ranks=$3 hosts=$4
    shift 4
    check "$name, $ranks ranks, $hosts hosts, $net" env NCCL_NET=$net NCCL_DEBUG=WARN kolo perf "$name" --np "$ranks" --hosts "$hosts" "$@" -n 1 -w 0
    echo "RDMA-TIME $name, $ranks ranks, $hosts hosts, $net: $(last_time) us"
}

every_collective() { # on two hosts over sockets as well, for the time beside
    local name net
    for name in $collectives; do
        for net in IB Socket; do perf $net $name 2 2 -b 40 -e 300K -f 87; done
    done
    for name in $collectives; do perf IB $name 3 3 -b 100K -e 100K; done
    perf IB hypercube 4 2 -b 40 -e 300K -f 87
}

# Rank 1 is killed when operations run; its peer's device would give up after an hour.
killed_peer() {
    local began rows=0 pid= dead= seen= line
    clock
    began=$now
    mkfifo /tmp/lines
    NCCL_NET=IB NCCL_IB_TIMEOUT=31 NCCL_DEBUG=WARN kolo perf all_reduce --np 2 --hosts 2 -b 64K -e 64K -n 1 -w 0 -N 0 >/tmp/lines 2>&1 &
    while read -r line; do
        echo "$line"
        case $line in
        *"Rank  1 "*"Pid "*) set -- ${line#*Pid } && pid=$1 ;;
        65536*) rows=$((rows + 1)) ;;
        *"rank 0"*"rank 1 "*"is gone"* | *"rank 0"*"rank 1 "*closed*) clock && seen=${seen:-$now} ;;
        esac
        if [ -z "$dead" ] && [ "$rows" -eq 3 ] && kill -9 "$pid"; then clock && dead=$now; fi
    done </tmp/lines >/tmp/out
    [ -n "$seen" ]
    result $? "a killed peer" "$began"
    [ -z "$seen" ] || echo "RDMA-TIME a killed peer is noticed after $((seen - dead))0 ms"
    grep -m 1 'rank 0.*rank 1 ' /tmp/out | sed 's/^/RDMA-SAID /'
}

counters() { # the device's, that are not zero
    local file
    for file in /sys/class/infiniband/rxe0/ports/1/hw_counters/*; do
        read -r value <"$file" && [ "$value" != 0 ] && [ "${file##*/}" != lifespan ] && echo "RDMA-COUNTER ${file##*/} $value"
    done
}

one() {
    /bin/ip link set lo up
    /bin/ip link add d0 type dummy
    /bin/ip link set d0 mtu 4200
    /bin/ip addr add 10.9.0.1/24 dev d0
    /bin/ip link set d0 up
    rdma link add rxe0 type rxe netdev d0
    export NCCL_SOCKET_IFNAME=d0
    shows "the device" rxe0 kolo topo
    killed_peer
    says "a GID that is absent" "has no GID there, but" env NCCL_NET=IB NCCL_IB_GID_INDEX=9 NCCL_DEBUG=WARN kolo perf all_reduce --np 2 --hosts 2 -b 8 -e 8 -n 1
    every_collective
    check "conformance of nets" verbs_test --hardware
    counters
}

# ---- two machines, a rank on each ----

port=29500

job() { # job COMMAND...: this machine's rank; each job has a port of its own, and all have one secret
    port=$((port + 1))
    env KOLO_SECRET=wire RANK=$rank WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=10.8.0.1 MASTER_PORT=$port NCCL_NET=IB NCCL_DEBUG=WARN "$@"
}

two() {
    rank=$1
    hostname "$me"
    /bin/ip link set lo up
    /bin/ip addr add "10.8.0.$((rank + 1))/24" dev eth0
    /bin/ip link set eth0 up
    rdma link add rxe0 type rxe netdev eth0
    export NCCL_SOCKET_IFNAME=eth0
    for name in $collectives; do
        check "$name, 2 machines" job kolo perf $name -b 40 -e 300K -f 87 -n 1 -w 0
    done
    counters
}

load_modules
case $me in
one) one ;;
left) two 0 ;;
right) two 1 ;;
esac
echo "RDMA-END $(took 0) since the machine began"
poweroff -f

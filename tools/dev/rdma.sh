#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rdma.sh BUILD - the RDMA net over Soft-RoCE, the kernel's software RDMA, in a virtual machine: the conformance of nets, and collectives.
#
# Needs qemu-system-x86 busybox-static cpio kmod rdma-core ibverbs-providers ibverbs-utils iproute2, and a Debian kernel with the modules:
# KOLO_RDMA_KERNEL=linux-image-VERSION-amd64_..._amd64.deb, or apt-get download fetches one. Without them it says so, and exits with 77.
# KVM is not used, as it is often missing in containers: the processor is emulated, which takes some minutes.
set -eu
build=$1
cd "$(dirname "$0")/../.."

skip() { # skip REASON
    echo "skipped: $1"
    exit 77
}

for program in qemu-system-x86_64 busybox cpio depmod rdma ip ibv_devinfo dpkg-deb; do
    command -v "$program" >/dev/null || [ -x "/usr/sbin/$program" ] || skip "$program is not installed"
done
PATH=$PATH:/usr/sbin:/sbin
[ -x "$build/bin/verbs_test" ] && [ -x "$build/kolo" ] || skip "$build has no verbs_test and kolo; ./dev build makes them"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- the kernel ----

kernel_package() {
    apt-cache search '^linux-image-[0-9.]+-[0-9]+-amd64$' | cut -d' ' -f1 | sort -V | tail -1
}

deb=${KOLO_RDMA_KERNEL-}
if [ -z "$deb" ]; then
    package=$(kernel_package)
    [ -n "$package" ] || skip "no kernel package is known; apt-get update, or set KOLO_RDMA_KERNEL"
    (cd "$work" && apt-get download "$package" >/dev/null 2>&1) || skip "$package cannot be fetched: no network?"
    deb=$(ls "$work"/linux-image-*.deb)
fi
dpkg-deb -x "$deb" "$work/x"
version=$(ls "$work/x/lib/modules")
modules=$work/x/lib/modules/$version
depmod -b "$work/x" "$version"

# ---- the root file system ----

root=$work/root
lib=usr/lib/x86_64-linux-gnu
mkdir -p "$root/bin" "$root/lib/modules" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/etc/libibverbs.d" "$root/$lib/libibverbs"
for module in $(grep -E '/(rdma_rxe|rdma_ucm|ib_uverbs)\.ko:|drivers/net/dummy\.ko:' "$modules/modules.dep" | tr ':' ' ') kernel/crypto/crc32_generic.ko; do
    cp "$modules/$module" "$root/lib/modules/"
done
cp "$(command -v busybox)" "$root/bin/busybox"
for program in rdma ip ibv_devinfo; do cp -L "$(command -v $program)" "$root/bin/"; done
cp -L "$build/bin/verbs_test" "$build/kolo" "$root/bin/"
for program in "$root"/bin/*; do ldd "$program" 2>/dev/null | grep -o '/[^ ]*' || true; done | sort -u | while read -r file; do
    mkdir -p "$root$(dirname "$file")"
    cp -L "$file" "$root$file"
done
cp -L "/$lib"/libibverbs/librxe-rdmav*.so "$root/$lib/libibverbs/"
cp -L /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/"

cat >"$root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox mkdir -p /sbin /usr/bin /usr/sbin
/bin/busybox --install -s 2>/dev/null
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/tmp
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
mkdir -p /dev/shm; mount -t tmpfs shm /dev/shm
for i in 1 2 3 4 5; do for m in /lib/modules/*.ko; do insmod $m 2>/dev/null; done; done
/bin/ip link set lo up; /bin/ip link add d0 type dummy; /bin/ip addr add 10.9.0.1/24 dev d0; /bin/ip link set d0 up
rdma link add rxe0 type rxe netdev d0; sleep 1
export NCCL_SOCKET_IFNAME=d0 KOLO_NVML=0
check() { name=$1; shift; if "$@" >/tmp/out 2>&1; then echo "RDMA-OK $name"; else echo "RDMA-FAILED $name"; tail -20 /tmp/out; fi; }
says() { name=$1 text=$2; shift 2; "$@" >/tmp/out 2>&1; if grep -q "$text" /tmp/out; then echo "RDMA-OK $name"; else echo "RDMA-FAILED $name"; tail -20 /tmp/out; fi; }
check conformance verbs_test --hardware
for c in all_reduce all_gather reduce_scatter broadcast reduce alltoall sendrecv; do
    check "$c, 2 hosts" env NCCL_NET=IB kolo perf $c --np 2 --hosts 2 -b 40 -e 300K -f 87 -n 1 -w 0
done
check "all_reduce, 3 hosts" env NCCL_NET=IB kolo perf all_reduce --np 3 --hosts 3 -b 300K -e 300K -n 1 -w 0
check "all_reduce, 2 hosts, sockets" env NCCL_NET=Socket kolo perf all_reduce --np 2 --hosts 2 -b 40 -e 300K -f 87 -n 1 -w 0
says "a wrong GID is explained" "has no GID there, but" env NCCL_NET=IB NCCL_IB_GID_INDEX=9 NCCL_DEBUG=WARN kolo perf all_reduce --np 2 --hosts 2 -b 8 -e 8 -n 1
echo RDMA-END
poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc 2>/dev/null | gzip -1) >"$work/initrd.gz"

# ---- run ----

timeout "${KOLO_RDMA_TIMEOUT_S:-1500}" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -m 2048 -smp 2 -nographic -no-reboot \
    -kernel "$work/x/boot/vmlinuz-$version" -initrd "$work/initrd.gz" -append "console=ttyS0 panic=-1 nokaslr quiet" </dev/null |
    tr -d '\r' | tee "$work/console" | grep -aE --line-buffered 'RDMA-|ERROR|FAILED|rank ' || true
grep -aq RDMA-END "$work/console" || { echo "the virtual machine did not come to the end" && exit 1; }
if grep -aq RDMA-FAILED "$work/console"; then exit 1; fi

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rdma.sh BUILD - the RDMA net over Soft-RoCE, the kernel's software RDMA, in virtual machines: one, whose processes share its device, and two with a
# wire between them. tools/dev/rdma_guest.sh runs in them.
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

# ---- the kernel, and the modules that are loaded, in this order: kept in the build tree, as unpacking takes longer than a run ----

kernel_package() { # the newest that is here, else that can be fetched
    newest=$(ls "$build/rdma" 2>/dev/null | grep '^linux-image-' | sort -V | tail -1)
    [ -n "$newest" ] && echo "$newest" && return
    apt-cache search '^linux-image-[0-9.]+-[0-9]+-amd64$' | cut -d' ' -f1 | sort -V | tail -1
}

needed_first() { # needed_first NAME: the module's file, after those that it needs
    sed -n "s|^\([^:]*/$1\.ko\):\(.*\)|\1\2|p" "$modules/modules.dep" | tr ' ' '\n' | tac
}

unpack() { # unpack PACKAGE FOLDER
    dpkg-deb -x "$1" "$work/x"
    version=$(ls "$work/x/lib/modules")
    modules=$work/x/lib/modules/$version
    depmod -b "$work/x" "$version"
    mkdir -p "$2/modules"
    for name in crc32_generic dummy virtio_pci virtio_net rdma_rxe; do needed_first $name; done | awk '!seen[$0]++' | while read -r module; do
        cp "$modules/$module" "$2/modules/"
        basename "$module"
    done >"$2/order"
    cp "$work/x/boot/vmlinuz-$version" "$2/vmlinuz"
}

deb=${KOLO_RDMA_KERNEL-}
package=${deb:+$(basename "$deb" .deb)}
package=${package:-$(kernel_package)}
[ -n "$package" ] || skip "no kernel package is known; apt-get update, or set KOLO_RDMA_KERNEL"
kernel=$build/rdma/$package
if [ ! -d "$kernel" ]; then
    if [ -z "$deb" ]; then
        (cd "$work" && apt-get download "$package" >/dev/null 2>&1) || skip "$package cannot be fetched: no network?"
        deb=$(ls "$work"/linux-image-*.deb)
    fi
    echo "unpacking $package"
    unpack "$deb" "$work/kernel"
    mkdir -p "$build/rdma"
    mv "$work/kernel" "$kernel"
fi

# ---- the root file system: these programs, and nothing else; without symbols, as the emulated processor has to copy all of it ----

root=$work/root lib=usr/lib/x86_64-linux-gnu
mkdir -p "$root/bin" "$root/lib/modules" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/etc/libibverbs.d" "$root/$lib/libibverbs"
cp "$kernel/modules/"*.ko "$kernel/order" "$root/lib/modules/"
cp "$(command -v busybox)" "$root/bin/busybox"
for program in rdma ip ibv_devinfo; do cp -L "$(command -v $program)" "$root/bin/"; done
cp -L "$build/bin/verbs_test" "$build/kolo" "$root/bin/"
for program in "$root"/bin/*; do ldd "$program" 2>/dev/null | grep -o '/[^ ]*' || true; done | sort -u | while read -r file; do
    mkdir -p "$root$(dirname "$file")"
    cp -L "$file" "$root$file"
done
cp -L "/$lib"/libibverbs/librxe-rdmav*.so "$root/$lib/libibverbs/"
cp -L /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/"
strip "$root/bin/kolo" "$root/bin/verbs_test"
cp tools/dev/rdma_guest.sh "$root/init"
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc 2>/dev/null) >"$work/initrd"

# ---- run ----

wire=$work/wire # the cable between two machines, a socket of the host

# boot NAME OPTIONS...: its console in build/log/rdma-NAME.log, the lines about checks on the terminal. The machine's time is the number of its
# instructions: on a busy one, its timeouts take as much longer, and the kernel finds the same speeds of its clocks. That takes one processor.
boot() {
    name=$1
    shift
    timeout "${KOLO_RDMA_TIMEOUT_S:-3600}" qemu-system-x86_64 -accel tcg -icount shift=3,sleep=on -cpu max -m 768 -smp 1 -nodefaults -no-reboot \
        -display none -serial stdio -kernel "$kernel/vmlinuz" -initrd "$work/initrd" \
        -append "console=ttyS0 panic=-1 quiet nokaslr mitigations=off no_timer_check clocksource=tsc tsc=reliable kolo=$name" "$@" </dev/null 2>&1 |
        sed -u 's/\r//' | tee "$log/rdma-$name.log" | sed -un "s/.*RDMA-/$name: /p"
}

adapter() { # adapter LAST BYTE, SIDE OF THE WIRE: its options
    echo "-netdev stream,id=wire,$2,addr.type=unix,addr.path=$wire -device virtio-net-pci,netdev=wire,mac=52:54:00:00:00:0$1,romfile="
}

log=$build/log
mkdir -p "$log"
rm -f "$log"/rdma-*.log
boot one &
boot left $(adapter 1 server=on) &
while [ ! -S "$wire" ]; do sleep 0.1; done
boot right $(adapter 2 server=off) &
wait

failed=0
for name in one left right; do
    grep -aq RDMA-END "$log/rdma-$name.log" || { echo "machine $name did not come to its end: $log/rdma-$name.log" && failed=1; }
    ! grep -aq RDMA-FAILED "$log/rdma-$name.log" || failed=1
done
echo "$(cat "$log"/rdma-*.log | grep -ac 'RDMA-OK') passed, $(cat "$log"/rdma-*.log | grep -ac 'RDMA-FAILED') failed"
exit $failed

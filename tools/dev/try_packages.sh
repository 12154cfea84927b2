#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# try_packages.sh FOLDER - install the Debian packages of a folder in a bare Debian 12, use them, remove them; nothing may be left then.
#
# The system is made by debootstrap in build/package/chroot.tar, once. Needs root and a Debian mirror (KOLO_DEBIAN_MIRROR); exits 77 with the
# reason where one is missing.
set -eu

skip() {
    echo "try_packages: $*"
    exit 77
}

folder=$(cd "$1" && pwd)
place=$PWD/build/package
mirror=${KOLO_DEBIAN_MIRROR:-http://deb.debian.org/debian}
[ "$(id -u)" -eq 0 ] || skip "a chroot needs root"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
unshare --mount --pid --fork true 2>/dev/null || skip "namespaces are not allowed here"
mkdir -p "$place"

if [ ! -f "$place/chroot.tar" ]; then
    first=$(mktemp -d "$place/debootstrap.XXXXXX")
    # The trial's own needs. The packages' dependencies come from the mirror later, so that none is forgotten.
    if ! debootstrap --variant=minbase --include=man-db,gcc,libc6-dev,pkg-config bookworm "$first" "$mirror" >"$place/debootstrap.log" 2>&1; then
        tail -n 3 "$place/debootstrap.log"
        rm -rf "$first"
        skip "debootstrap cannot reach $mirror"
    fi
    tar -C "$first" -cf "$place/chroot.tar.new" . && mv "$place/chroot.tar.new" "$place/chroot.tar"
    rm -rf "$first"
fi

root=$(mktemp -d "$place/root.XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
trap 'exit 130' HUP INT TERM
tar -C "$root" -xf "$place/chroot.tar"
mkdir "$root/packages"
cp "$folder"/*.deb "$root/packages/"
rm -f "$root"/packages/*-dbgsym_*.deb
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp "$(dirname "$0")/try_packages_inside.sh" "$root/packages/try.sh"
unshare --mount --pid --fork sh -c '
    mount --make-rprivate / && mount -t proc proc "$1/proc" && mount --rbind /sys "$1/sys" && mount --rbind /dev "$1/dev" &&
    exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh /packages/try.sh' sh "$root"

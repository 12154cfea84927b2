#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# try_rpm.sh TARBALL - build the RPM packages of a source tarball, install them below an empty root, use them from there, remove them.
#
#   git archive --prefix=kolo-0.1.0/ -o kolo-0.1.0.tar.gz HEAD
#
# Where the system has no macros of Fedora's for CMake and Python (Debian), some are defined here as Fedora has them. Everything is below
# $PWD/rpm-trial. Dependencies are neither checked nor installed. Needs rpmbuild; exits 77 where it is missing. `try_rpm.sh TARBALL again` tries the
# packages of the last build.
set -eu
spec=$(cd "$(dirname "$0")/../.." && pwd)/packaging/rpm/kolo.spec
tarball=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
command -v rpmbuild >/dev/null || { echo "try_rpm: rpmbuild is not installed" && exit 77; }
place=$PWD/rpm-trial root=$PWD/rpm-trial/root again=${2-}
[ -n "$again" ] || rm -rf "$place"
rm -rf "$place/use" "$root" "$place/files" && mkdir -p "$place/SOURCES" "$place/use" "$root/var/lib/rpm"
cp "$tarball" "$place/SOURCES/"

set -- --define "_topdir $place"
if [ "$(rpm --eval '%{?cmake_build}')" = "" ]; then
    version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    set -- "$@" --nodeps --define 'debug_package %{nil}' --define '_lib lib64' --define '_libdir %{_prefix}/lib64' --define "python3_version $version" \
        --define "__python3 $(command -v python3)" --define 'python3_sitearch %{_libdir}/python%{python3_version}/site-packages' \
        --define 'build_cflags -O2 -g -Wall -Werror=format-security -Wp,-D_FORTIFY_SOURCE=2 -fexceptions -fstack-protector-strong -fstack-clash-protection -fcf-protection -fno-omit-frame-pointer' \
        --define 'build_ldflags -Wl,-z,relro -Wl,--as-needed -Wl,-z,now' \
        --define 'cmake export CFLAGS="%{build_cflags}" CXXFLAGS="%{build_cflags}" LDFLAGS="%{build_ldflags}"; cmake -S . -B redhat-build -DCMAKE_C_FLAGS_RELEASE:STRING=-DNDEBUG -DCMAKE_CXX_FLAGS_RELEASE:STRING=-DNDEBUG -DCMAKE_INSTALL_DO_STRIP:BOOL=OFF -DCMAKE_INSTALL_PREFIX:PATH=%{_prefix} -DLIB_SUFFIX=64 -DBUILD_SHARED_LIBS:BOOL=ON' \
        --define 'cmake_build cmake --build redhat-build %{?_smp_mflags}' \
        --define 'cmake_install DESTDIR="%{buildroot}" cmake --install redhat-build'
fi
[ -n "$again" ] || rpmbuild -bb "$@" "$spec" >"$place/build.log" 2>&1 || { tail -n 40 "$place/build.log" && exit 1; }

packages=$(find "$place/RPMS" -name '*.rpm' ! -name '*debug*')
for file in $packages; do
    echo "== $(basename "$file")"
    rpm -qp --qf '[provides %{PROVIDES} %{PROVIDEVERSION}\n]' "$file"
    rpm -qpR "$file" | sed '/^rpmlib(/d; s/^/requires /'
    rpm -qpl "$file" | sed "s|^|$(rpm -qp --qf '%{NAME}' "$file") |" >>"$place/files"
done
twice=$(sed 's/^[^ ]* //' "$place/files" | grep -vE '/kolo$|/licenses(/|$)|/\.build-id(/..)?$' | sort | uniq -d)
[ -z "$twice" ] || { echo "in two packages: $twice" && exit 1; }

rpm --root "$root" --initdb
rpm --root "$root" -i --nodeps $packages
cd "$place/use"
export PYTHONDONTWRITEBYTECODE=1 LD_LIBRARY_PATH="$root/usr/lib64" PKG_CONFIG_PATH="$root/usr/lib64/pkgconfig" PATH="$root/usr/bin:$PATH"
kolo topo >/dev/null
kolo explain all_reduce 64M --machine dgx-h100 --hosts 2 | sed -n 1p
cat >sum.c <<'PROGRAM'
#include <kolo.h>
#include <stdio.h>

int main(void)
{
    float x = 2, sum = 0;
    ncclComm_t comm;

    if (koloInitFromEnv(&comm) || ncclAllReduce(&x, &sum, 1, ncclFloat, ncclSum, comm, NULL) || koloStreamSynchronize(NULL)) return 1;
    printf("sum %g\n", sum);
    return ncclCommDestroy(comm) != ncclSuccess;
}
PROGRAM
gcc sum.c -o sum $(pkg-config --cflags --libs kolo)
kolo run -n 3 ./sum | sort | uniq -c | grep -q '3 sum 6' || { echo "try_rpm: kolo run -n 3 ./sum" && exit 1; }
PYTHONPATH=$(find "$root/usr/lib64" -name site-packages) python3 -c '
import kolocc, os
data = bytearray(b"1234")
with kolocc.init() as comm:
    comm.allreduce(data)
assert data == b"1234"
assert os.path.exists(os.path.join(kolocc.get_library(), "libkolo.so.0")), kolocc.get_library()
assert os.path.exists(os.path.join(kolocc.get_nccl(), "libnccl.so.2")) and os.path.exists(os.path.join(kolocc.get_cuda(), "libcudart.so.13"))
print(kolocc.plan("dgx-h100", hosts=2).channels, "channels")'
cat >add.cu <<'PROGRAM'
__global__ void add(int *x) { x[threadIdx.x] += 1; }

int main()
{
    int *x, y[4] = {};
    cudaMalloc(&x, sizeof y);
    cudaMemcpy(x, y, sizeof y, cudaMemcpyHostToDevice);
    add<<<1, 4>>>(x);
    cudaMemcpy(y, x, sizeof y, cudaMemcpyDeviceToHost);
    return y[3] != 1;
}
PROGRAM
kolo-nvcc add.cu -o add
./add
rpm --root "$root" -e --nodeps $(rpm -qp --qf '%{NAME} ' $packages)
left=$(find "$root" \( -path "$root/var" -o -name .rpmdb \) -prune -o ! -type d -print)
[ -z "$left" ] || { echo "removal leaves $left" && exit 1; }
echo "$(echo "$packages" | wc -w) packages: built, used below a root of their own, removed"

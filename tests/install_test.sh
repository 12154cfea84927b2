#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install_test.sh - the files that users of an installed Kolo see: headers, library, drop-in link, pkg-config file, CMake package.
#
# Installs $KOLO_BUILD into a scratch prefix, moves it, and builds a program from it in C and C++, by pkg-config and by
# find_package.
set -eu

scratch=$(mktemp -d "${TMPDIR:-/tmp}/kolo-install.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' HUP INT TERM

fail() {
    echo "install_test: $*" >&2
    exit 1
}

if ! nm -D --defined-only "$KOLO_BUILD/libkolo.so" | grep -q ' ncclGetVersion$'; then
    echo "install_test: libkolo.so does not define ncclGetVersion, nothing to call"
    exit 77
fi

cmake --install "$KOLO_BUILD" --prefix "$scratch/first" >"$scratch/log" || fail "cmake --install: $(cat "$scratch/log")"
prefix=$scratch/moved
mv "$scratch/first" "$prefix"
lib=$(dirname "$(find "$prefix" -name libkolo.so)")
export LD_LIBRARY_PATH="$lib" PKG_CONFIG_PATH="$lib/pkgconfig"

for header in nccl.h nccl_device.h kolo.h koloplan.h; do
    [ -f "$prefix/include/kolo/$header" ] || fail "no $header in $prefix/include/kolo"
done
[ "$(find "$prefix/include" -type f | wc -l)" -eq 4 ] || fail "more than the public headers in $prefix/include"
echo '#error "the nccl.h of another"' >"$prefix/include/nccl.h" # as NVIDIA's, beside ours
[ -f "$prefix/share/man/man1/kolo-explain.1" ] || fail "no man page of kolo explain"
"$prefix/bin/kolo" --version >/dev/null || fail "bin/kolo --version"

root=$PWD

mkdir "$scratch/user"
cd "$scratch/user"
cat >user.c <<'END'
#include <kolo.h>
#include <stdio.h>

int main(void)
{
    int version = 0;

    if (ncclGetVersion(&version) != ncclSuccess || version != NCCL_VERSION_CODE) return 1;
    printf("NCCL API %d\n", version);
    return 0;
}
END
cp user.c user_cxx.cpp
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(user C CXX)
find_package(kolo 0.1 REQUIRED)
add_executable(by_package user.c)
add_executable(by_package_cxx user_cxx.cpp)
target_link_libraries(by_package kolo::kolo)
target_link_libraries(by_package_cxx kolo::kolo)
END

gcc -std=c11 user.c -o by_pkgconfig $(pkg-config --cflags --libs kolo) || fail "C by pkg-config"
g++ -std=c++17 user_cxx.cpp -o by_pkgconfig_cxx $(pkg-config --cflags --libs kolo) || fail "C++ by pkg-config"
{ cmake -G Ninja -S . -B build -DCMAKE_PREFIX_PATH="$prefix" && cmake --build build; } >"$scratch/log" 2>&1 ||
    fail "find_package(kolo): $(cat "$scratch/log")"
for program in ./by_pkgconfig ./by_pkgconfig_cxx build/by_package build/by_package_cxx; do
    "$program" >"$scratch/log" || fail "$program: wrong version, or it does not start"
done

# libkoloplan by itself: by pkg-config, and as a component of the package. A component that does not exist is named.
gcc -std=c11 "$root/examples/plan/compare.c" -o compare $(pkg-config --cflags --libs koloplan) || fail "koloplan by pkg-config"
mkdir plan
cat >plan/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.22)
project(plan C)
find_package(kolo 0.1 REQUIRED COMPONENTS koloplan)
add_executable(compare $root/examples/plan/compare.c)
target_link_libraries(compare kolo::koloplan)
find_package(kolo 0.1 QUIET COMPONENTS nonsense)
if(kolo_FOUND)
    message(FATAL_ERROR "a component that does not exist was found")
endif()
END
{ cmake -G Ninja -S plan -B plan/build -DCMAKE_PREFIX_PATH="$prefix" && cmake --build plan/build; } >"$scratch/log" 2>&1 ||
    fail "find_package(kolo COMPONENTS koloplan): $(cat "$scratch/log")"
for program in ./compare plan/build/compare; do
    "$program" dgx-a100 dgx-h100 16 268435456 >"$scratch/log" || fail "$program"
    [ "$(grep -c '"schema": "kolo\.\(estimate\|diff\)/1"' "$scratch/log")" -eq 3 ] || fail "$program: not the three answers"
    ! "$program" dgx-a100 nonsense 2 1 2>"$scratch/log" || fail "$program: a machine that does not exist"
    grep -q nonsense "$scratch/log" || fail "$program: $(cat "$scratch/log")"
done
! readelf -d compare | grep -q 'NEEDED.*libkolo\.so' || fail "a program of libkoloplan needs libkolo"

# A tool that watches calls: its own ncclX stands before the library's, and reaches it as pncclX.
gcc -x c - $(pkg-config --cflags --libs kolo) -o by_watching <<'END'
#include <kolo.h>

static int calls;

ncclResult_t ncclGetVersion(int *version)
{
    calls++;
    return pncclGetVersion(version);
}

int main(void)
{
    int version = 0;

    return ncclGetVersion(&version) || version != NCCL_VERSION_CODE || calls != 1;
}
END
./by_watching || fail "a program with an ncclGetVersion of its own"

# Versions: kolo* have one, which programs remember, and programs that were linked before there were any start as well.
gcc -shared -fPIC -Wl,-soname,libkolo.so.0 -o libkolo.so.0 -x c - <<'END'
int koloGetDevice(int *device) { return *device = 1; }
END
cat >device.c <<'END'
#include <kolo.h>

int main(void)
{
    int device;

    return koloGetDevice(&device);
}
END
gcc device.c $(pkg-config --cflags --libs kolo) -o by_version
gcc device.c $(pkg-config --cflags kolo) ./libkolo.so.0 -o by_no_version
readelf -Ws --dyn-syms by_version | grep -q 'koloGetDevice@KOLO_' || fail "a program does not remember the version of koloGetDevice"
for program in ./by_version ./by_no_version; do
    LD_LIBRARY_PATH="$lib" "$program" || fail "$program: koloGetDevice"
done

# The drop-in, with nothing but its own folder in the library path: for a program that was linked with another libnccl.so.2,
nccl=$lib/kolo/nccl
unset LD_LIBRARY_PATH
gcc -shared -fPIC -Wl,-soname,libnccl.so.2 -o libnccl.so -x c - <<'END'
int ncclGetVersion(int *version) { return *version = 1; }
END
gcc user.c -I"$prefix/include/kolo" -o by_dropin ./libnccl.so
LD_LIBRARY_PATH="$nccl" ./by_dropin >/dev/null || fail "libnccl.so.2 in the library path"

# for one that is linked with this one, and asks for libnccl.so.2 afterwards,
gcc user.c -I"$nccl/include" -L"$nccl/lib" -o by_home -lnccl || fail "linking with NCCL_HOME=$nccl"
readelf -d by_home | grep -q 'NEEDED.*libnccl.so.2' || fail "a program linked with -lnccl does not ask for libnccl.so.2"
LD_LIBRARY_PATH="$nccl" ./by_home >/dev/null || fail "a program linked with -lnccl"

# and for one that opens it while it has libkolo.so as well: both are one library.
gcc -x c - -I"$prefix/include/kolo" -L"$lib" -o by_dlopen -lkolo -ldl <<'END'
#include <dlfcn.h>
#include <kolo.h>

int main(void)
{
    void *nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);

    return !nccl || dlsym(nccl, "ncclAllReduce") != (void *)ncclAllReduce;
}
END
LD_LIBRARY_PATH="$nccl:$lib" ./by_dlopen || fail "libnccl.so.2 beside libkolo.so"

# Uninstalling takes away the installed files, and no more.
mkdir -p "$scratch/second/share/man"
touch "$scratch/second/share/man/another"
cmake --install "$KOLO_BUILD" --prefix "$scratch/second" >"$scratch/log" || fail "cmake --install: $(cat "$scratch/log")"
cp "$KOLO_BUILD/install_manifest.txt" "$scratch/manifest.txt"
cmake -D MANIFEST="$scratch/manifest.txt" -P "$root/cmake/Uninstall.cmake" >"$scratch/log" 2>&1 || fail "uninstall: $(cat "$scratch/log")"
left=$(cd "$scratch/second" && find . ! -type d)
[ "$left" = ./share/man/another ] || fail "after uninstalling there is $left"
! cmake -D MANIFEST="$scratch/manifest.txt" -P "$root/cmake/Uninstall.cmake" >"$scratch/log" 2>&1 || fail "uninstalled twice"
tr -s ' \n' ' ' <"$scratch/log" | grep -q "nothing was installed" || # CMake breaks lines by the length of the path
    fail "uninstalled twice: $(cat "$scratch/log")"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# try_packages_inside.sh - the part of try_packages.sh that runs in the bare system, where /packages has the packages.
set -eu
trap 'echo "try_packages: line ${LINENO-} failed" >&2' EXIT
cd /tmp

files() { # all files of the system but for logs and caches
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /packages -o -path /var/cache -o -path /var/log -o -path /var/lib/apt \
        -o -path /var/lib/dpkg \) -prune -o -print | sort
}

# NVIDIA's header, as libnccl-dev has it: a program by pkg-config must not see it.
printf '#error "this is NVIDIA'"'"'s nccl.h"\n' >/usr/include/nccl.h
apt-get update -qq
# Dependencies first: afterwards only the packages themselves are installed and removed.
apt-get install -y -qq --no-install-recommends /packages/*.deb >/tmp/install.log 2>&1 || { tail -n 20 /tmp/install.log && exit 1; }
ours=$(for file in /packages/*.deb; do dpkg-deb -f "$file" Package; done)
dpkg --purge $ours >/dev/null
files >/tmp/before
dpkg -i /packages/*.deb >/dev/null

for page in kolo kolo-explain kolo-nvcc kolocc; do
    man -P cat "$page" 2>/tmp/man.log | grep -q SYNOPSIS || { echo "man $page: $(cat /tmp/man.log)" && exit 1; }
    [ ! -s /tmp/man.log ] || { cat /tmp/man.log && exit 1; }
done
man -P cat kolo-explain | sed -n 1,12p

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
kolo run -n 3 ./sum | sort | uniq -c | grep -q '3 sum 6'
nm -D sum | grep -q 'koloInitFromEnv@KOLO_0.1'
gcc -x c - -o plan $(pkg-config --cflags --libs koloplan) <<'PROGRAM'
#include <koloplan.h>

int main(void) { return 0; }
PROGRAM
./plan

kolo topo >/dev/null
kolo explain all_reduce 64M --machine dgx-h100 --hosts 2 | sed -n 1p
[ -f /usr/share/kolo/machines/dgx-h100.xml ] || ls /usr/share/kolo/machines | sed -n 1,3p
python3 -c '
import kolocc, os
data = bytearray(b"1234")
with kolocc.init() as comm:
    comm.allreduce(data)
assert data == b"1234"
assert os.path.exists(os.path.join(kolocc.get_library(), "libkolo.so.0")), kolocc.get_library()
assert {"kolo.h", "nccl.h"} <= set(os.listdir(kolocc.get_include()))
assert os.path.exists(os.path.join(kolocc.get_nccl(), "libnccl.so.2")) and os.path.exists(os.path.join(kolocc.get_cuda(), "libcudart.so.13"))
print(kolocc.plan("dgx-h100", hosts=2).channels, "channels")
'
# `import torch` calls the entry points of this group, by which "kolo" is a backend of its own accord.
python3 -c '
import importlib.metadata as metadata

(point,) = metadata.entry_points(group="torch.backends", name="kolocc")
assert point.load().__module__ == "kolocc._torch_autoload" and metadata.version("kolo-collectives")'
kolocc run -n 2 ./sum | sort | uniq -c | grep -q '2 sum 4'
LD_LIBRARY_PATH=$(dirname "$(find /usr/lib -path '*kolo/nccl/libnccl.so.2')") python3 -c '
import ctypes
version = ctypes.c_int()
assert ctypes.CDLL("libnccl.so.2").ncclGetVersion(ctypes.byref(version)) == 0 and version.value > 20000'
cat >add.cu <<'PROGRAM'
#include <cstdio>

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
bash -c '. /usr/share/bash-completion/completions/kolo; COMP_WORDS=(kolo explain --mach); COMP_CWORD=2; _kolo; [ "${COMPREPLY[*]}" = --machine ]'

dpkg --purge $ours >/dev/null
files >/tmp/after
diff /tmp/before /tmp/after || { echo "removal leaves files" && exit 1; }
trap - EXIT
echo "$(echo "$ours" | wc -w) packages: installed, used, and removed without a trace"

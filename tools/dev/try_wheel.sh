#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# try_wheel.sh FOLDER [PYTHON] - install the wheel of a folder into a fresh virtual environment, where no compiler can be found, and use it. Where
# PYTHON has PyTorch, another environment sees that, too, compiles the backend, and makes a step of DistributedDataParallel on two ranks.
set -eu

folder=$(cd "$1" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kolo-wheel.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' HUP INT TERM

wheel=$(find "$folder" -name 'kolo_collectives-*.whl' | sort | tail -n 1)
[ -n "$wheel" ] || { echo "try_wheel: no kolo_collectives-*.whl in $folder" && exit 1; }
python3 -m venv "$scratch/venv"
cd "$scratch"
begin=$(date +%s)
env -i PATH="$scratch/venv/bin" HOME="$scratch" "$scratch/venv/bin/python" -m pip install -q --no-index --no-deps "$wheel"
cat >job.py <<'END'
import kolocc

with kolocc.init() as comm:
    data = bytearray([comm.rank + 1] * 1024)
    comm.allreduce(data)
    assert data == bytes([comm.size * (comm.size + 1) // 2] * 1024), data[:8]
    print("rank", comm.rank, "of", comm.size)
END
run() { env -i PATH="$scratch/venv/bin" HOME="$scratch" "$@"; }
run python job.py
echo "from pip install to the first all-reduce: $(($(date +%s) - begin)) s"
run kolocc run -n 2 job.py
run kolocc topo --machine dgx-h100 >/dev/null
for file in man/man1/kolocc.1 man/man1/kolo-explain.1 bash-completion/completions/kolocc; do
    [ -f "$scratch/venv/share/$file" ] || { echo "try_wheel: no share/$file in the environment" && exit 1; }
done
run python - <<'END'
import ctypes
import os

import kolocc

plan = kolocc.plan("dgx-h100", hosts=128)
assert plan.ranks == 1024 and plan.estimate("all_reduce", 1 << 28).time_us > 0
assert kolocc.explain("nics", machine="dgx-h100", hosts=2).summary
nccl = ctypes.CDLL(os.path.join(kolocc.get_nccl(), "libnccl.so.2"))
version = ctypes.c_int()
assert nccl.ncclGetVersion(ctypes.byref(version)) == 0 and version.value == kolocc.nccl_version()
assert {"kolo.h", "koloplan.h", "nccl.h"} <= set(os.listdir(kolocc.get_include())), kolocc.get_include()
print(os.path.basename(kolocc.get_library()), plan.channels, "channels")
END
# As a program that is linked with CUDA's runtime has it: from its start on.
cuda=$(run python -c 'import kolocc; print(kolocc.get_cuda())')
env -i LD_PRELOAD="$cuda/libcudart.so.13" HOME="$scratch" "$scratch/venv/bin/python" - <<'END'
import ctypes

devices = ctypes.c_int()
assert ctypes.CDLL(None).cudaGetDeviceCount(ctypes.byref(devices)) == 0 and devices.value > 0
END
echo "$(basename "$wheel"): installed and used without a compiler"

torch=${2-}
[ -n "$torch" ] && [ -x "$torch" ] || { echo "PyTorch: not tried: ./dev setup --torch" && exit 0; }
"$torch" -m venv "$scratch/ddp"
ddp() { env -i PATH="$scratch/ddp/bin:/usr/bin:/bin" HOME="$scratch" OMP_NUM_THREADS=1 ${CXX:+"CXX=$CXX"} "$scratch/ddp/bin/python" "$@"; }
"$torch" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))' >"$(ddp -c 'import site; print(site.getsitepackages()[0])')/torch.pth"
cat >step.py <<'END'
import torch
import torch.distributed as dist

dist.init_process_group("kolo")  # which the wheel has registered
rank, size = dist.get_rank(), dist.get_world_size()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1, bias=False))
model(torch.full((1, 4), rank + 1.0)).sum().backward()
mean = (size + 1) / 2
assert torch.equal(model.module.weight.grad, torch.full((1, 4), mean)), model.module.weight.grad
print("step of rank", rank)
dist.destroy_process_group()
END
begin=$(date +%s)
ddp -m pip install -q --no-index --no-deps "$wheel"
installed=$(date +%s)
ddp -m kolocc.torch
compiled=$(date +%s)
ddp -m torch.distributed.run --standalone --nproc-per-node 2 step.py
end=$(date +%s)
echo "from pip install to the first DDP step: $((end - begin)) s, of which pip $((installed - begin)), the compiler $((compiled - installed))"

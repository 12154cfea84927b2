# SPDX-License-Identifier: Apache-2.0
"""Print, for CMake: version of PyTorch; name of the module for it; its folder; Python's headers. PyTorch is not imported, which takes seconds."""
import importlib.metadata
import importlib.util
import pathlib
import sysconfig

spec = importlib.util.find_spec("torch")
if spec is None or spec.origin is None:
    raise SystemExit("there is none")
folder = pathlib.Path(spec.origin).parent
if not (folder / "include/torch/csrc/distributed/c10d/Backend.hpp").exists():
    raise SystemExit(f"{folder} has no headers of torch.distributed")
version = importlib.metadata.version("torch")
major, minor = version.split(".")[:2]
print(version, f"_c10d_{major}_{minor}", folder, sysconfig.get_path("include"), sep=";")

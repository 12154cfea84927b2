# SPDX-License-Identifier: Apache-2.0
"""Print, for CMake: version of PyTorch; name of the module for it; its folder; Python's headers."""
import sysconfig

import torch
import torch.distributed

if not torch.distributed.is_available():
    raise SystemExit("this PyTorch was built without torch.distributed")
major, minor = torch.__version__.split(".")[:2]
print(torch.__version__, f"_c10d_{major}_{minor}", torch.__path__[0], sysconfig.get_path("include"), sep=";")

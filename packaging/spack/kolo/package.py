# SPDX-License-Identifier: Apache-2.0
import os

from spack.package import *


class Kolo(CMakePackage):
    """Collective communication on CPUs with the NCCL API, and plans for GPU clusters."""

    homepage = "https://example.org/kolo"
    git = "https://example.org/kolo.git"

    license("Apache-2.0")

    version("main", branch="main")

    variant("cuda_standin", default=True, description="The stand-in for CUDA on CPUs, and kolo-nvcc")
    variant("python", default=False, description="The Python package kolocc")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda_standin")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.11:", type=("build", "run"), when="+python")
    depends_on("python@3:", type="build")  # man pages and completion
    depends_on("expat")
    depends_on("jansson")
    depends_on("libsodium")
    depends_on("openblas", when="+cuda_standin")  # its libcublas

    extends("python", when="+python")
    generator("ninja")
    conflicts("platform=darwin", msg="Kolo needs Linux")
    conflicts("platform=windows", msg="Kolo needs Linux")

    def cmake_args(self):
        args = [
            self.define("KOLO_TESTS", False),
            self.define("KOLO_GPU", "OFF"),
            self.define_from_variant("KOLO_CUDA", "cuda_standin"),
            self.define_from_variant("KOLO_PYTHON", "python"),
        ]
        if self.spec.satisfies("+python"):
            args.append(self.define("KOLO_PYTHON_INSTALL_DIR", os.path.relpath(python_platlib, self.prefix)))
        return args

    def setup_run_environment(self, env):
        # Programs for NCCL find the drop-in only where they ask for it: LD_LIBRARY_PATH=$KOLO_NCCL
        env.set("KOLO_NCCL", join_path(self.prefix.lib, "kolo", "nccl"))

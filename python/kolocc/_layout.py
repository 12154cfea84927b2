# SPDX-License-Identifier: Apache-2.0
# Where libraries, headers and programs are, seen from this folder: in the wheel. A package of a distribution has a file of its own (CMakeLists.txt).
LIBRARY = "lib"
INCLUDE = "include/kolo"
NCCL = "lib/kolo/nccl"
CUDA = "lib/kolo/cuda"
TOOL = "bin/kolo"

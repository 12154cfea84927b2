# SPDX-License-Identifier: Apache-2.0
# A toolchain file for projects with CUDA sources:
#
#     cmake -DCMAKE_TOOLCHAIN_FILE=PREFIX/lib/kolo/cuda/cmake/kolo-cuda.cmake ...
#
# CMake finds the properties of kolo-nvcc by itself; this names it, and the toolkit for FindCUDAToolkit.
get_filename_component(kolo_cuda_home ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
set(CMAKE_CUDA_COMPILER ${kolo_cuda_home}/bin/nvcc CACHE FILEPATH "kolo-nvcc")
set(CMAKE_CUDA_ARCHITECTURES 90 CACHE STRING "without effect: there is code for none")
set(CUDAToolkit_ROOT ${kolo_cuda_home} CACHE PATH "Kolo's CUDA runtime")

# The folders are implicit to CMake, which gives programs no path to such; elsewhere the loader may find NVIDIA's libraries.
foreach(kind EXE SHARED MODULE)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT "-Wl,-rpath,${kolo_cuda_home}:${kolo_cuda_home}/../nccl")
endforeach()

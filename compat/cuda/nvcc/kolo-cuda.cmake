# SPDX-License-Identifier: Apache-2.0
# A toolchain file for projects with CUDA sources:
#
#     cmake -DCMAKE_TOOLCHAIN_FILE=PREFIX/lib/kolo/cuda/cmake/kolo-cuda.cmake ...
#
# CMake would ask nvcc for its steps and look into what they make. It is told instead.
get_filename_component(kolo_cuda_home ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
if(DEFINED ENV{KOLO_CUDA_HOME})
    set(kolo_cuda_home $ENV{KOLO_CUDA_HOME})
endif()

set(CMAKE_CUDA_COMPILER ${kolo_cuda_home}/bin/nvcc CACHE FILEPATH "kolo-nvcc")
set(CMAKE_CUDA_COMPILER_FORCED TRUE)
set(CMAKE_CUDA_COMPILER_ID_RUN TRUE)
set(CMAKE_CUDA_COMPILER_ID NVIDIA)
set(CMAKE_CUDA_COMPILER_VERSION 13.0.88)
set(CMAKE_CUDA_COMPILER_WORKS TRUE)
set(CMAKE_CUDA_STANDARD_COMPUTED_DEFAULT 17)
set(CMAKE_CUDA_EXTENSIONS_COMPUTED_DEFAULT ON)
set(CMAKE_CUDA_COMPILER_TOOLKIT_ROOT ${kolo_cuda_home})
set(CMAKE_CUDA_COMPILER_TOOLKIT_LIBRARY_ROOT ${kolo_cuda_home})
set(CMAKE_CUDA_COMPILER_TOOLKIT_VERSION 13.0.88)
set(CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES ${kolo_cuda_home}/include)
set(CMAKE_CUDA_HOST_LINK_LAUNCHER c++)
set(CMAKE_CUDA_RUNTIME_LIBRARY_DEFAULT SHARED)
set(CMAKE_CUDA_ARCHITECTURES OFF CACHE STRING "there are none")
set(CUDAToolkit_ROOT ${kolo_cuda_home})

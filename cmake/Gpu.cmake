# SPDX-License-Identifier: Apache-2.0
# Kernels for GPUs: libraries that libkolo.so opens at run time and that hold one symbol, an image for CUDA's driver. libkolo.so itself has nothing of CUDA.
set(KOLO_GPU AUTO CACHE STRING "code for NVIDIA GPUs, by nvcc 13: ON, OFF, or AUTO: in release builds, where nvcc is installed")
set(KOLO_NVCC "" CACHE FILEPATH "nvcc; empty: from the search path, else from /usr/local/cuda")
set(KOLO_GPU_ARCHITECTURES all CACHE STRING "architectures with machine code in libkolo-cuda, as 80;90; or all")

set(kolo_gpu_folder ${PROJECT_SOURCE_DIR}/src/coll/gpu)
set(kolo_gpu_sources)
foreach(file kernels.cu copy.cuh format.cuh operation.cuh reduce.cuh flags.cuh lines.cuh nvls.cuh edges.cuh schedule.cuh job.h flags_job.h rows.h nvls_job.h kernels.h)
    list(APPEND kolo_gpu_sources ${kolo_gpu_folder}/${file})
endforeach()

# The same sources for the CPUs of the stand-in, where a C++ compiler is installed.
find_program(KOLO_CXX NAMES c++ g++ clang++)
if(KOLO_CUDA AND KOLO_CXX)
    set(kolo_gpu_stand_in ${PROJECT_BINARY_DIR}/libkolo-cuda-standin.so.0)
    # Linked without kolo-nvcc, which would have it search the runtime in the build tree, wherever it is installed.
    add_custom_command(OUTPUT ${kolo_gpu_stand_in} BYPRODUCTS ${kolo_gpu_stand_in}.o
        COMMAND $<TARGET_FILE:kolo_nvcc> -std=c++17 -O2 -c -Xcompiler -fPIC -DKL_FOR_STAND_IN -I${PROJECT_SOURCE_DIR}/src -o ${kolo_gpu_stand_in}.o ${kolo_gpu_folder}/kernels.cu
        COMMAND ${KOLO_CXX} -shared -o ${kolo_gpu_stand_in} ${kolo_gpu_stand_in}.o -L$<TARGET_FILE_DIR:kolo_cudart> -lcudart
                "-Wl,-rpath,$ORIGIN/lib/kolo/cuda:$ORIGIN/cuda"
        DEPENDS kolo_nvcc kolo_cudart ${kolo_gpu_sources} VERBATIM)
    add_custom_target(kolo_gpu_stand_in ALL DEPENDS ${kolo_gpu_stand_in})
    add_dependencies(kolo_products kolo_gpu_stand_in)
    install(PROGRAMS ${kolo_gpu_stand_in} DESTINATION ${CMAKE_INSTALL_LIBDIR}/kolo)
endif()

if(KOLO_GPU STREQUAL "OFF" OR KOLO_SANITIZE)
    return()
endif()
if(KOLO_GPU STREQUAL "AUTO" AND NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
endif()
if(NOT KOLO_NVCC)
    find_program(kolo_nvcc_found nvcc PATHS /usr/local/cuda/bin)
    if(kolo_nvcc_found)
        set(KOLO_NVCC ${kolo_nvcc_found})
    endif()
endif()
set(kolo_nvcc_version "")
if(KOLO_NVCC)
    execute_process(COMMAND ${KOLO_NVCC} --version OUTPUT_VARIABLE kolo_nvcc_version ERROR_QUIET)
endif()
if(NOT kolo_nvcc_version MATCHES "release 1[3-9]")
    if(KOLO_GPU STREQUAL "ON")
        message(FATAL_ERROR "KOLO_GPU=ON needs nvcc of CUDA 13: install it, or name it in KOLO_NVCC")
    endif()
    message(STATUS "no nvcc of CUDA 13: nothing is built for GPUs")
    return()
endif()

# Machine code for each architecture, which serves its later minor versions, and PTX of 9.0, or else of the first, for others. Registers and spills
# go to gpu-kernels.txt.
set(kolo_gpu_list ${KOLO_GPU_ARCHITECTURES})
if(kolo_gpu_list STREQUAL "all")
    set(kolo_gpu_list 80 90 100 120)
endif()
set(kolo_gpu_fatbin ${PROJECT_BINARY_DIR}/kernels.fatbin)
set(kolo_gpu_architectures)
foreach(sm ${kolo_gpu_list})
    list(APPEND kolo_gpu_architectures -gencode arch=compute_${sm},code=sm_${sm})
endforeach()
list(GET kolo_gpu_list 0 kolo_gpu_ptx)
if(90 IN_LIST kolo_gpu_list)
    set(kolo_gpu_ptx 90)
endif()
list(APPEND kolo_gpu_architectures -gencode arch=compute_${kolo_gpu_ptx},code=compute_${kolo_gpu_ptx})
add_custom_command(OUTPUT ${kolo_gpu_fatbin} BYPRODUCTS ${PROJECT_BINARY_DIR}/gpu-kernels.txt
    COMMAND ${KOLO_NVCC} -std=c++17 -I${PROJECT_SOURCE_DIR}/src -O3 -fatbin -Xptxas -v -Werror all-warnings ${kolo_gpu_architectures}
            ${kolo_gpu_folder}/kernels.cu -o ${kolo_gpu_fatbin} 2>${PROJECT_BINARY_DIR}/gpu-kernels.txt || cat ${PROJECT_BINARY_DIR}/gpu-kernels.txt && test -s ${kolo_gpu_fatbin}
    DEPENDS ${kolo_gpu_sources})
add_library(kolo_gpu SHARED ${kolo_gpu_folder}/image.c ${kolo_gpu_fatbin})
set_source_files_properties(${kolo_gpu_folder}/image.c PROPERTIES OBJECT_DEPENDS ${kolo_gpu_fatbin})
target_compile_definitions(kolo_gpu PRIVATE KL_FATBIN="${kolo_gpu_fatbin}")
set_target_properties(kolo_gpu PROPERTIES OUTPUT_NAME kolo-cuda VERSION ${PROJECT_VERSION} SOVERSION 0)
add_dependencies(kolo_products kolo_gpu)
install(TARGETS kolo_gpu LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)

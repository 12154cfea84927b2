# SPDX-License-Identifier: Apache-2.0
# The toolchain of the fuzz targets: the clang that tools/dev/clang.sh finds, with libFuzzer.
if(NOT CMAKE_C_COMPILER)
    execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../tools/dev/clang.sh clang OUTPUT_VARIABLE clang OUTPUT_STRIP_TRAILING_WHITESPACE
                    COMMAND_ERROR_IS_FATAL ANY)
    set(CMAKE_C_COMPILER ${clang})
endif()

# SPDX-License-Identifier: Apache-2.0
# The drop-in: lib/kolo/nccl, a folder of the shape that NCCL_HOME has, for programs that ask for libnccl.so.2.
#
# The library there is a filter: it has the names, so that programs link and say "libnccl.so.2" afterwards, and the
# dynamic linker takes their meaning from libkolo.so.0. So a process that loads both has one Kolo.
function(kolo_dropin folder)
    file(STRINGS ${PROJECT_SOURCE_DIR}/tools/dev/symbols.txt names REGEX "^p?nccl")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/dev/symbols.txt)
    set(source "/* SPDX-License-Identifier: Apache-2.0 */\n/* Never called: libkolo.so.0 stands before them. */\n")
    foreach(name IN LISTS names)
        string(APPEND source "void ${name}(void);\nvoid ${name}(void) { __builtin_trap(); }\n")
    endforeach()
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/dropin.c CONTENT "${source}" @ONLY)

    add_library(kolo_dropin SHARED ${PROJECT_BINARY_DIR}/dropin.c)
    set(output ${PROJECT_BINARY_DIR}/lib/kolo/nccl)
    set_target_properties(kolo_dropin PROPERTIES OUTPUT_NAME nccl SOVERSION 2 C_VISIBILITY_PRESET default
                          LIBRARY_OUTPUT_DIRECTORY ${output}
                          BUILD_RPATH "$ORIGIN/../../.." INSTALL_RPATH "$ORIGIN/../..")
    target_compile_options(kolo_dropin PRIVATE -fno-builtin)
    target_link_options(kolo_dropin PRIVATE -Wl,--filter=libkolo.so.0 -Wl,--enable-new-dtags)
    add_dependencies(kolo_library kolo_dropin) # whoever builds the one can install both

    # As NCCL_HOME: include/ and lib/.
    file(MAKE_DIRECTORY ${output})
    file(CREATE_LINK . ${output}/lib SYMBOLIC)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include ${output}/include SYMBOLIC)
    set(include_from_folder ${CMAKE_INSTALL_FULL_INCLUDEDIR}/kolo)
    cmake_path(RELATIVE_PATH include_from_folder BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${folder})
    install(TARGETS kolo_dropin LIBRARY DESTINATION ${folder})
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/dropin)
    file(CREATE_LINK ${include_from_folder} ${PROJECT_BINARY_DIR}/dropin/include SYMBOLIC)
    install(FILES ${output}/lib ${PROJECT_BINARY_DIR}/dropin/include DESTINATION ${folder})
endfunction()

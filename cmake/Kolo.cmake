# SPDX-License-Identifier: Apache-2.0
# A few helpers; everything else in the build is a list of files.

# kolo_sources(a.c b.c ...): add sources of the current folder to the library.
function(kolo_sources)
    foreach(file IN LISTS ARGN)
        target_sources(kolo_objects PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    endforeach()
endfunction()

# kolo_test(spsc_test [LABELS ...]): build <name>.c against the library with its private symbols and register it.
function(kolo_test name)
    if(KOLO_TESTS)
        add_executable(${name} ${name}.c)
        target_link_libraries(${name} PRIVATE kolo_objects cmocka)
        set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
        add_test(NAME ${name} COMMAND ${KOLO_TEST_WRAPPER} $<TARGET_FILE:${name}> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        set_tests_properties(${name} PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77 LABELS "${ARGN}")
    endif()
endfunction()

# kolo_sanitize(): compile and link everything with the sanitizers named by KOLO_SANITIZE.
# ThreadSanitizer maps its shadow at fixed addresses, which address randomisation of new kernels collides with.
macro(kolo_sanitize)
    if(KOLO_SANITIZE)
        add_compile_options(-fsanitize=${KOLO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
        add_link_options(-fsanitize=${KOLO_SANITIZE})
    endif()
    if(KOLO_SANITIZE STREQUAL "thread")
        set(KOLO_TEST_WRAPPER setarch ${CMAKE_HOST_SYSTEM_PROCESSOR} -R)
    endif()
endmacro()

# kolo_library(): the shared library, its drop-in name, and what is installed.
function(kolo_library)
    set(map ${PROJECT_SOURCE_DIR}/cmake/kolo.map)
    add_library(kolo SHARED $<TARGET_OBJECTS:kolo_objects>)
    target_link_libraries(kolo PRIVATE kolo_objects)
    target_link_options(kolo PRIVATE -Wl,--version-script=${map} -Wl,-z,defs)
    set_target_properties(kolo PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0 LINK_DEPENDS ${map})
    if(KOLO_SANITIZE)
        set_target_properties(kolo PROPERTIES LINK_OPTIONS -Wl,--version-script=${map}) # the runtime is in the program
    endif()
endfunction()

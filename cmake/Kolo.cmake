# SPDX-License-Identifier: Apache-2.0
# A few helpers; everything else in the build is a list of files.

# The words to put before a script or a program that starts others: afterwards, does anything of it still run?
set(KOLO_LEFTOVERS python3 ${PROJECT_SOURCE_DIR}/tests/leftovers.py)

# kolo_sources(a.c b.c ...): add sources of the current folder to the library. In folders that set KOLO_ON_PATH, those of operations, functions are inlined
# where they would be too large else: a small send and receive passes through forty of them, and takes 3 to 5 % less.
function(kolo_sources)
    foreach(file IN LISTS ARGN)
        target_sources(kolo_objects PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${file})
        if(KOLO_ON_PATH AND KOLO_WHOLE_PROGRAM)
            set_source_files_properties(${file} TARGET_DIRECTORY kolo_objects PROPERTIES COMPILE_OPTIONS
                "--param=max-inline-insns-auto=80;--param=inline-unit-growth=100;--param=large-function-growth=300")
        endif()
    endforeach()
endfunction()

# koloplan_sources(a.c b.c ...): add sources of the current folder to the library of plans and answers.
function(koloplan_sources)
    foreach(file IN LISTS ARGN)
        target_sources(koloplan_objects PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    endforeach()
endfunction()

# kolo_test_support(): what unit tests are linked with beside their own file, compiled once: the library's objects as an archive, of which a
# test takes what it needs, and the look at what it leaves behind. An archive leaves out what nobody calls, such as what is done at the end of a process
# (comm/at_exit.c): programs with communicators, which are in folders that set KOLO_WITH_COMMUNICATORS, are linked with all objects.
function(kolo_test_support)
    add_library(kolo_archive STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:kolo_objects>)
    target_link_libraries(kolo_archive PUBLIC kolo_objects)
    add_library(koloplan_archive STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:koloplan_objects>)
    target_link_libraries(koloplan_archive PUBLIC kolo_archive koloplan_objects)
    if(KOLO_TESTS)
        add_library(kolo_leftovers OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/leftovers.c)
        target_compile_definitions(kolo_leftovers PRIVATE _GNU_SOURCE)
        target_include_directories(kolo_leftovers PRIVATE ${PROJECT_SOURCE_DIR})
    endif()
endfunction()

# kolo_test(host/stream_test [LABEL ...]): build host/stream_test.c against the library with its private symbols and
# register it as stream_test. It fails if it leaves something behind (tests/leftovers.h). The label "slow" keeps a test out of `./dev test quick`.
# Folders of plans and answers set KOLO_WITH_PLAN: their tests are linked with those as well.
# In folders that set KOLO_ONE_THREAD, of functions without threads or shared memory, tests are labelled one_thread, as others may be: ThreadSanitizer has nothing to see
# there, so its build leaves them out, and `./dev test` as well.
function(kolo_test path)
    if(KOLO_TESTS)
        cmake_path(GET path FILENAME name)
        add_executable(${name} ${path}.c)
        if(KOLO_WITH_PLAN) # before the archive that it needs
            target_link_libraries(${name} PRIVATE koloplan_archive)
        endif()
        target_link_libraries(${name} PRIVATE kolo_leftovers $<IF:$<BOOL:${KOLO_WITH_COMMUNICATORS}>,kolo_objects,kolo_archive> cmocka)
        set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
        add_test(NAME ${name} COMMAND ${KOLO_TEST_WRAPPER} $<TARGET_FILE:${name}> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        if(KOLO_ONE_THREAD)
            list(APPEND ARGN one_thread)
        endif()
        if("one_thread" IN_LIST ARGN AND KOLO_SANITIZE STREQUAL "thread")
            set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
        endif()
        kolo_test_defaults(${name} "${ARGN}")
    endif()
endfunction()

# kolo_script_test(cli_test.py [LABEL ...]): register a script (.sh or .py) of the current folder as the test `cli_test`.
# It runs in the source root and finds the build tree (kolo, libkolo.so, bin/) in $KOLO_BUILD.
function(kolo_script_test file)
    if(KOLO_TESTS)
        cmake_path(GET file STEM name)
        if(file MATCHES "\\.py$")
            set(interpreter python3)
        else()
            set(interpreter sh)
        endif()
        add_test(NAME ${name} COMMAND ${KOLO_TEST_WRAPPER} ${KOLO_LEFTOVERS} ${interpreter} ${CMAKE_CURRENT_SOURCE_DIR}/${file}
                 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        kolo_test_defaults(${name} "${ARGN}")
    endif()
endfunction()

# kolo_script_parts(check_test.py "Sound;Faults" [LABEL ...]): the same, but each of these classes of the script is a test of its own, check_sound_test
# and check_faults_test, and may take as long as a test may.
function(kolo_script_parts file parts)
    if(KOLO_TESTS)
        cmake_path(GET file STEM name)
        foreach(part IN LISTS parts)
            string(TOLOWER ${part} lower)
            string(REGEX REPLACE "_test$" "_${lower}_test" test ${name})
            add_test(NAME ${test} COMMAND ${KOLO_TEST_WRAPPER} ${KOLO_LEFTOVERS} python3 ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${part}
                     WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
            kolo_test_defaults(${test} "${ARGN}")
        endforeach()
    endif()
endfunction()

# What all tests have in common. How long one takes is no part of its result: only one that hangs is ended, by itself ($TEST_HANG_S, tests/hang.h) or by
# CTest. KOLO_TEST_TIME_SCALE is for machines on which even half an hour is not enough.
set(KOLO_TEST_TIME_SCALE 1 CACHE STRING "so many times as long before a test counts as hung")
math(EXPR kolo_test_hang_s "900 * ${KOLO_TEST_TIME_SCALE}")
math(EXPR kolo_test_timeout_s "2 * ${kolo_test_hang_s}")
function(kolo_test_defaults name labels)
    if("slow" IN_LIST labels) # they begin first, so that none is left alone at the end
        set_tests_properties(${name} PROPERTIES COST 100)
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${kolo_test_timeout_s} SKIP_RETURN_CODE 77 LABELS "${labels}"
        ENVIRONMENT "TEST_HANG_S=${kolo_test_hang_s};TEST_SANITIZE=${KOLO_SANITIZE};KOLO_BUILD=${PROJECT_BINARY_DIR};XDG_CACHE_HOME=/dev/null/cache;UBSAN_OPTIONS=print_stacktrace=1;TSAN_OPTIONS=die_after_fork=0:atexit_sleep_ms=20")
endfunction()

# kolo_fuzz(xml): build the libFuzzer target xml_fuzz from xml_fuzz.c; its corpus is corpus/xml/, its dictionary, if
# there is one, xml.dict. It is linked with the part of the library that it calls: libFuzzer reads the counters of all code in a program after each input.
function(kolo_fuzz name)
    add_executable(${name}_fuzz ${name}_fuzz.c)
    target_link_libraries(${name}_fuzz PRIVATE koloplan_archive)
    add_dependencies(kolo_fuzz_targets ${name}_fuzz)
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name}_fuzz PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endfunction()

# kolo_sanitize(): compile and link everything with the sanitizers named by KOLO_SANITIZE.
macro(kolo_sanitize)
    if(KOLO_SANITIZE)
        add_compile_options(-fsanitize=${KOLO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
        add_link_options(-fsanitize=${KOLO_SANITIZE})
        if(KOLO_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
            # At fixed addresses: the dynamic linker would else fill in AddressSanitizer's tables of globals at each start of a program, 370,000 addresses in the tool.
            add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
        endif()
        kolo_sanitizer_wrapper(KOLO_TEST_WRAPPER)
    endif()
endmacro()

# kolo_sanitizer_wrapper(VAR): the words to put before a sanitized program so that it starts. The shadow of a sanitizer
# lies at fixed addresses, which address randomisation of more than 28 bits collides with: always ThreadSanitizer's, now
# and then AddressSanitizer's. Containers may refuse to turn that off; where ThreadSanitizer then cannot start, every
# test is skipped and says why.
function(kolo_sanitizer_wrapper var)
    set(wrapper setarch ${CMAKE_HOST_SYSTEM_PROCESSOR} -R)
    execute_process(COMMAND ${wrapper} true RESULT_VARIABLE refused OUTPUT_QUIET ERROR_QUIET)
    if(refused)
        set(wrapper)
        set(bits 99)
        if(EXISTS /proc/sys/vm/mmap_rnd_bits)
            file(READ /proc/sys/vm/mmap_rnd_bits bits)
        endif()
        if(KOLO_SANITIZE STREQUAL "thread" AND bits GREATER 28)
            set(wrapper sh -c "echo 'ThreadSanitizer cannot run: setarch -R is refused here' && exit 77")
        endif()
    endif()
    set(${var} ${wrapper} PARENT_SCOPE)
endfunction()

# kolo_werror(): warnings are errors, with the compilers whose warnings we know. A newer one finds something new, and
# that should not keep anybody from building.
macro(kolo_werror)
    if((CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION MATCHES "^12\\.")
       OR (CMAKE_C_COMPILER_ID STREQUAL "Clang" AND CMAKE_C_COMPILER_VERSION MATCHES "^14\\."))
        add_compile_options(-Werror)
    else()
        message(STATUS "warnings are not errors with ${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}")
    endif()
endmacro()

# kolo_whole_program(): let the compiler see the library whole when it is linked, which saves small operations up to a seventh of their time
# (gcc; clang 14 has no objects that can be linked either way). Objects can be linked without that as well, which takes less time: tests are.
macro(kolo_whole_program)
    set(KOLO_WHOLE_PROGRAM OFF)
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE MATCHES "^Rel" AND NOT KOLO_SANITIZE)
        include(CheckIPOSupported)
        check_ipo_supported(RESULT KOLO_WHOLE_PROGRAM LANGUAGES C OUTPUT ignored)
    endif()
    if(KOLO_WHOLE_PROGRAM)
        add_link_options($<$<NOT:$<BOOL:$<TARGET_PROPERTY:IS_WHOLE>>>:-fno-lto>)
    endif()
endmacro()

# kolo_library(): the shared library, with nothing visible but what the linker map names. The target is not called kolo,
# which to ninja is the file of that name: the tool.
function(kolo_library)
    set(map ${PROJECT_SOURCE_DIR}/cmake/kolo.map)
    add_library(kolo_library SHARED $<TARGET_OBJECTS:kolo_objects>)
    add_library(kolo::kolo ALIAS kolo_library) # the name in the installed package, for who builds Kolo as a part of a project
    target_link_libraries(kolo_library PRIVATE kolo_objects)
    target_include_directories(kolo_library INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/kolo>)
    target_link_options(kolo_library PRIVATE -Wl,--version-script=${map} -Wl,-z,nodelete) # its threads outlive a dlclose
    if(KOLO_WHOLE_PROGRAM)
        target_link_options(kolo_library PRIVATE -flto=auto)
        set_target_properties(kolo_library PROPERTIES IS_WHOLE ON)
    endif()
    if(NOT KOLO_SANITIZE)
        target_link_options(kolo_library PRIVATE -Wl,-z,defs) # a sanitizer's runtime is in the program
    endif()
    set_target_properties(kolo_library PROPERTIES OUTPUT_NAME kolo EXPORT_NAME kolo VERSION ${PROJECT_VERSION} SOVERSION 0
                          LINK_DEPENDS ${map})
endfunction()

# koloplan_library(): the shared library of plans and answers. Of Kolo's objects it takes those that it needs; it does not need libkolo.so.
function(koloplan_library)
    set(map ${PROJECT_SOURCE_DIR}/cmake/koloplan.map)
    add_library(koloplan_library SHARED $<TARGET_OBJECTS:koloplan_objects>)
    add_library(kolo::koloplan ALIAS koloplan_library)
    target_link_libraries(koloplan_library PRIVATE kolo_archive PkgConfig::JANSSON)
    target_include_directories(koloplan_library INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/kolo>)
    target_link_options(koloplan_library PRIVATE -Wl,--version-script=${map} -Wl,--gc-sections)
    if(NOT KOLO_SANITIZE)
        target_link_options(koloplan_library PRIVATE -Wl,-z,defs)
    endif()
    set_target_properties(koloplan_library PROPERTIES OUTPUT_NAME koloplan EXPORT_NAME koloplan VERSION ${PROJECT_VERSION} SOVERSION 0
                          LINK_DEPENDS ${map})
endfunction()

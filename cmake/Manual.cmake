# SPDX-License-Identifier: Apache-2.0
# Man pages and completion for bash, zsh and fish, made of the option tables of the tools by tools/manual/manual.py.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(NOT Python3_Interpreter_FOUND)
    message(STATUS "man pages and completion are not made: there is no Python 3")
    return()
endif()

set(manual ${PROJECT_BINARY_DIR}/manual)
set(manual_programs $<TARGET_FILE:kolo_tool>)
set(manual_targets kolo_tool)
if(KOLO_CUDA)
    list(APPEND manual_programs $<TARGET_FILE:kolo_nvcc>)
    list(APPEND manual_targets kolo_nvcc)
endif()
add_custom_command(OUTPUT ${manual}/made COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/manual/manual.py ${PROJECT_VERSION} ${manual}
                   ${manual_programs} COMMAND ${CMAKE_COMMAND} -E touch ${manual}/made
                   DEPENDS ${PROJECT_SOURCE_DIR}/tools/manual/manual.py ${manual_targets} VERBATIM)
add_custom_target(kolo_manual ALL DEPENDS ${manual}/made)
add_dependencies(kolo_products kolo_manual)

# manual_install(kolo FOLDER): the pages and completions of kolo, or of the Python package.
function(manual_install name share)
    install(DIRECTORY ${manual}/${name}/ DESTINATION ${share})
endfunction()
if(NOT SKBUILD) # the wheel's program is kolocc: python/CMakeLists.txt
    manual_install(kolo ${CMAKE_INSTALL_DATADIR})
endif()

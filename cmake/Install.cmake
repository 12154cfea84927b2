# SPDX-License-Identifier: Apache-2.0
# Installed are the libraries and their headers, the tool, a CMake package (kolo::kolo and kolo::koloplan, which are its components),
# pkg-config files, the drop-in, a folder of its own with a libnccl.so.2, man pages, and completion for shells. Headers stand in include/kolo: NVIDIA's nccl.h
# may stand in include.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kolo)

install(TARGETS kolo_library EXPORT kolo LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS koloplan_library EXPORT koloplan LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/nccl.h include/nccl_device.h include/kolo.h include/koloplan.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kolo)
if(KOLO_TOOLS)
    install(TARGETS kolo_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    if(NOT KOLO_SANITIZE) # the known machines as files, for NCCL_TOPO_FILE and for reading
        install(DIRECTORY ${PROJECT_BINARY_DIR}/machines DESTINATION ${CMAKE_INSTALL_DATADIR}/kolo)
    endif()
endif()

if(KOLO_TOOLS AND NOT KOLO_SANITIZE)
    include(cmake/Manual.cmake)
endif()

install(EXPORT kolo NAMESPACE kolo:: FILE koloTargets.cmake DESTINATION ${package_dir})
install(EXPORT koloplan NAMESPACE kolo:: FILE koloplanTargets.cmake DESTINATION ${package_dir})
install(FILES cmake/koloConfig.cmake DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/koloConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/koloConfigVersion.cmake DESTINATION ${package_dir})

# The .pc file names its own place, so that an installed tree may be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig
           OUTPUT_VARIABLE prefix_from_pc)
foreach(name kolo koloplan)
    configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# cmake --build TREE --target uninstall: remove the files of the last `cmake --install TREE`.
if(PROJECT_IS_TOP_LEVEL)
    add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -D MANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
                      -P ${PROJECT_SOURCE_DIR}/cmake/Uninstall.cmake VERBATIM)
endif()

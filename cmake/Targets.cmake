include(GoogleTest)

# keelson_units(NAME SOURCE...): the sources of a target. In presets with KEELSON_UNITY files are joined where that cannot
# change their meaning (unity.py): with the precompiled header every file costs a second before its own code begins. CMake
# decides again after each edit which files go together, for all targets at once at the end of the configuration.
function(keelson_units name)
  if(NOT KEELSON_UNITY)
    target_sources(${name} PRIVATE ${ARGN})
    return()
  endif()
  set(line ${name} ${CMAKE_CURRENT_BINARY_DIR}/units)
  foreach(source ${ARGN})
    get_filename_component(file ${source} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
    list(APPEND line ${file})
    string(FIND ${file} ${CMAKE_BINARY_DIR}/ generated)
    if(NOT generated EQUAL 0)
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    endif()
  endforeach()
  list(JOIN line " " line)
  set_property(GLOBAL APPEND_STRING PROPERTY KEELSON_UNITS "${line}\n")
endfunction()

function(keelson_join_units)
  get_property(lines GLOBAL PROPERTY KEELSON_UNITS)
  file(WRITE ${CMAKE_BINARY_DIR}/units.txt "${lines}")
  execute_process(
    COMMAND ${KEELSON_PYTHON} ${CMAKE_SOURCE_DIR}/cmake/unity.py ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/units.txt
            ${CMAKE_BINARY_DIR}/units.cmake
    COMMAND_ERROR_IS_FATAL ANY)
  include(${CMAKE_BINARY_DIR}/units.cmake)
endfunction()
if(KEELSON_UNITY)
  cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL keelson_join_units)
endif()

# keelson_library(NAME SOURCES a.cc... DEPS keelson_base... [PRIVATE_DEPS lib...] [PCH api])
# One static library a folder. DEPS are part of the public headers, PRIVATE_DEPS are not.
# PCH api: the folder's files see the object model through one shared precompiled header.
function(keelson_library name)
  cmake_parse_arguments(ARG "" "PCH" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC)
  keelson_units(${name} ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_compile_options(${name} PRIVATE ${KEELSON_WARNINGS})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  keelson_pch(${name} "${ARG_PCH}")
endfunction()

# keelson_program(NAME SOURCES... DEPS... [PCH api] [BENCH])
function(keelson_program name)
  cmake_parse_arguments(ARG "" "PCH" "SOURCES;DEPS" ${ARGN})
  add_executable(${name})
  keelson_units(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${KEELSON_WARNINGS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  keelson_pch(${name} "${ARG_PCH}")
endfunction()

# keelson_test(NAME SOURCES a_test.cc... DEPS... [LABEL unit|netns|root|vm] [PCH api] [LOCK name] [DRIVEN])
# Each TEST is a CTest test of its own; they may run side by side and in any order, but not with others of the same LOCK.
# DRIVEN: built only; another test (tests/e2e) runs it.
function(keelson_test name)
  cmake_parse_arguments(ARG "DRIVEN" "PCH;LABEL;LOCK;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  add_executable(${name})
  keelson_units(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${KEELSON_WARNINGS} ${KEELSON_TEST_OPTIONS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} keelson_test_main Threads::Threads)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(ARG_PCH)
    keelson_pch(${name} ${ARG_PCH}_test)
  endif()
  if(NOT ARG_DRIVEN)
    set(environment)
    set(lock)
    if(ARG_LOCK)
      set(lock RESOURCE_LOCK ${ARG_LOCK})
    endif()
    if(KEELSON_SANITIZE STREQUAL "thread")
      # Debian's libraries are not instrumented: how their threads agree, and what they free, is not seen.
      set(environment ENVIRONMENT TSAN_OPTIONS=ignore_noninstrumented_modules=1)
    endif()
    gtest_discover_tests(${name} TEST_PREFIX ${name}. PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} ${lock} ${environment}
                         DISCOVERY_MODE PRE_TEST)
  endif()
endfunction()

# keelson_bench(NAME SOURCES... DEPS...): a Google Benchmark program, run by `./dev bench`.
function(keelson_bench name)
  cmake_parse_arguments(ARG "" "PCH" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_compile_options(${name} PRIVATE ${KEELSON_WARNINGS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} benchmark::benchmark_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  keelson_pch(${name} "${ARG_PCH}")
endfunction()

function(keelson_pch name which)
  if(NOT which STREQUAL "" AND NOT TARGET keelson_pch_${which})
    message(FATAL_ERROR "${name}: unknown precompiled header '${which}'")
  elseif(which AND NOT KEELSON_CLANG_TIDY)
    target_precompile_headers(${name} REUSE_FROM keelson_pch_${which})
  endif()
endfunction()

# Everything that protoc writes: what clang-tidy needs of a build.
add_custom_target(keelson_generated)

# keelson_protos(NAME PROTOS a.proto... [GRPC] DEPS...): generated code, compiled once, without warnings.
# protoc writes beside the outputs, which change only with their contents: a comment costs no compile.
function(keelson_protos name)
  cmake_parse_arguments(ARG "GRPC" "" "PROTOS;DEPS" ${ARGN})
  set(generated)
  set(fresh ${CMAKE_BINARY_DIR}/protoc)
  file(MAKE_DIRECTORY ${fresh})
  foreach(proto ${ARG_PROTOS})
    file(RELATIVE_PATH rel ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${proto})
    string(REGEX REPLACE "\\.proto$" "" stem ${rel})
    set(files ${stem}.pb.cc ${stem}.pb.h)
    set(plugin)
    if(ARG_GRPC)
      list(APPEND files ${stem}.grpc.pb.cc ${stem}.grpc.pb.h)
      set(plugin --grpc_out=${fresh} --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>)
    endif()
    set(outputs)
    set(copies)
    foreach(file ${files})
      list(APPEND outputs ${CMAKE_BINARY_DIR}/${file})
      list(APPEND copies COMMAND ${CMAKE_COMMAND} -E copy_if_different ${fresh}/${file} ${CMAKE_BINARY_DIR}/${file})
    endforeach()
    add_custom_command(
      OUTPUT ${outputs}
      COMMAND protobuf::protoc -I${CMAKE_SOURCE_DIR} --cpp_out=${fresh} ${plugin} ${rel}
      ${copies}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${proto}
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
      VERBATIM)
    list(APPEND generated ${outputs})
  endforeach()
  add_custom_target(${name}_files DEPENDS ${generated})
  add_dependencies(keelson_generated ${name}_files)
  add_library(${name} STATIC ${generated})
  target_include_directories(${name} SYSTEM PUBLIC ${CMAKE_BINARY_DIR})
  target_compile_options(${name} PRIVATE -w)
  if(KEELSON_SANITIZE)  # protoc's code is not what is looked at, and much of the build
    target_compile_options(${name} PRIVATE -fno-sanitize=all)
  endif()
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf ${ARG_DEPS})
  if(ARG_GRPC)
    target_link_libraries(${name} PUBLIC gRPC::grpc++)
  endif()
endfunction()

# keelson_bpf_program(NAME SOURCE x.bpf.c [INCLUDES a.h...]): compiled for the kernel by clang, and embedded. The generated header
# FOLDER/x.bpf.h declares std::string_view keelson::bpf::embedded::NAME(), the ELF file's bytes.
# Sources see linux/bpf.h and libbpf's helpers only, so that nothing depends on the kernel that this machine runs.
function(keelson_bpf_program name)
  cmake_parse_arguments(ARG "" "SOURCE" "INCLUDES" ${ARGN})
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SOURCE})
  file(RELATIVE_PATH rel ${CMAKE_SOURCE_DIR} ${source})
  string(REGEX REPLACE "\\.c$" "" stem ${CMAKE_BINARY_DIR}/${rel})
  get_filename_component(folder ${stem} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${stem}.o
    COMMAND ${KEELSON_BPF_CLANG} -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror -I${CMAKE_SOURCE_DIR}
            -isystem /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} -fdebug-prefix-map=${CMAKE_SOURCE_DIR}=. -MD -MF ${stem}.d
            -c ${source} -o ${stem}.o
    COMMAND ${KEELSON_BPF_STRIP} -g ${stem}.o  # debug information goes, BTF stays
    DEPENDS ${source} DEPFILE ${stem}.d
    VERBATIM)
  file(CONFIGURE OUTPUT ${stem}.h CONTENT
"// Generated.
#pragma once

#include <string_view>

namespace keelson::bpf::embedded {
std::string_view @name@();
}
")
  file(CONFIGURE OUTPUT ${stem}.cc CONTENT
"// Generated.
#include <string_view>

asm(\".pushsection .rodata.bpf,\\\"a\\\"\\n.balign 16\\nbegin_@name@: .incbin \\\"@stem@.o\\\"\\nend_@name@:\\n.popsection\");
extern \"C\" __attribute__((visibility(\"hidden\"))) const char begin_@name@[], end_@name@[];

namespace keelson::bpf::embedded {
std::string_view @name@();
std::string_view @name@() { return {begin_@name@, static_cast<size_t>(end_@name@ - begin_@name@)}; }
}
")
  set_source_files_properties(${stem}.cc PROPERTIES OBJECT_DEPENDS ${stem}.o)
  add_library(${name} STATIC ${stem}.cc)
  target_include_directories(${name} PUBLIC ${CMAKE_BINARY_DIR})
endfunction()

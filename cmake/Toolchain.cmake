# Language level, warnings, sanitizers, and the tools that make builds quick.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

set(KEELSON_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")
set(KEELSON_TEST_OPTIONS "" CACHE STRING "Compile options of tests alone; -O0 halves what they take to compile")
option(KEELSON_UNITY "Compile several files as one where that cannot change their meaning" OFF)
option(KEELSON_FUZZER "Build tests/fuzz with libFuzzer (clang)" OFF)
option(KEELSON_CLANG_TIDY "Run clang-tidy on every file that is compiled" OFF)

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(CCACHE ccache)
  if(CCACHE)
    set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
    # Precompiled headers and ccache agree only with these relaxations (ccache(1), PRECOMPILED HEADERS).
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
        CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=true CCACHE_PCH_EXTSUM=true ${CCACHE})
  endif()
endif()
find_program(LLD ld.lld)
if(LLD)
  add_link_options(-fuse-ld=lld)
  if(CMAKE_CXX_FLAGS MATCHES "-O2")
    # A third of a daemon's resident memory is its own code. Functions of equal code are one; code that runs at start or
    # in errors only has pages of its own.
    add_link_options(-Wl,--icf=all -Wl,-z,keep-text-section-prefix)
  endif()
endif()

# Generated protobuf code is not ours to warn about; everything else is.
set(KEELSON_WARNINGS -Wall -Wextra -Wpedantic -Wshadow=local -Wnon-virtual-dtor -Woverloaded-virtual
    -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND KEELSON_WARNINGS -Wthread-safety -Wno-gnu-zero-variadic-macro-arguments)
elseif(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # gcc 12 at -O2 sees overflows in std::string's operator+ that are not there (its bug 105651).
  list(APPEND KEELSON_WARNINGS -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
if(CMAKE_COMPILER_IS_GNUCXX)
  if(KEELSON_UNITY)  # a file that another includes is no header
    list(APPEND KEELSON_WARNINGS -Wno-subobject-linkage)
  endif()
  # The compiler of Debian 12, whose warnings are known; sanitizers make it see values that are not there.
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13 AND NOT KEELSON_SANITIZE)
    list(APPEND KEELSON_WARNINGS -Werror)
  endif()
endif()
if(CMAKE_COMPILER_IS_GNUCXX)
  # gcc collects garbage every few hundred MB of a heap that the precompiled header fills: a tenth of its time.
  add_compile_options(--param=ggc-min-heapsize=600000)
endif()
add_compile_options(-fno-plt -ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections -Wl,--as-needed)
if(KEELSON_SANITIZE)
  add_compile_options(-fsanitize=${KEELSON_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${KEELSON_SANITIZE})
  add_compile_definitions(KEELSON_SANITIZED)
  if(KEELSON_SANITIZE STREQUAL "thread")
    # protobuf's headers lay maps out otherwise when they see the first, and Debian's library is compiled without.
    # libstdc++ goes by the second.
    add_compile_options(-U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
  endif()
endif()
if(KEELSON_FUZZER)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(KEELSON_CLANG_TIDY)
  set(CMAKE_CXX_CLANG_TIDY clang-tidy --quiet)
endif()

# Programs for another processor, by Debian's cross compiler and that processor's libraries, which stand beside the machine's own.
# KEELSON_TRIPLET in the environment is what dpkg-architecture calls DEB_HOST_GNU_TYPE (tools/dev/packages.sh).
set(triplet $ENV{KEELSON_TRIPLET})
if(NOT triplet)
  message(FATAL_ERROR "KEELSON_TRIPLET is not set")
endif()
set(CMAKE_SYSTEM_NAME Linux)
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR ${triplet})
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
set(PKG_CONFIG_EXECUTABLE /usr/bin/${triplet}-pkg-config CACHE FILEPATH "pkg-config of that processor")

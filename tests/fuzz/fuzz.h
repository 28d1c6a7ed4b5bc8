// Fuzz targets: each feeds arbitrary bytes to a parser of foreign input and checks what must hold of whatever
// comes out. One program holds them all. Built by gcc it replays the corpus (and mutations of it); built by
// clang with KEELSON_FUZZER it is a libFuzzer program, and KEELSON_FUZZ_TARGET names the target.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

namespace keelson::fuzz {

using Target = void (*)(std::string_view input);

// By name.
std::map<std::string_view, Target>& Targets();

struct Registration {
  Registration(std::string_view name, Target target) { Targets().emplace(name, target); }
};

// A property that does not hold is a crash, as fuzzers expect it.
#define FUZZ_CHECK(condition, text)                                                          \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n%s\n", __FILE__, __LINE__, #condition, \
                   std::string(text).c_str());                                               \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)

}  // namespace keelson::fuzz

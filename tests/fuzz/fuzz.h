// Fuzz targets: each passes arbitrary bytes to a parser of untrusted input, and checks properties of the
// result. One program contains all of them. Built with gcc it replays the corpus and mutations of it; built
// with clang and KEELSON_FUZZER it is a libFuzzer program, and KEELSON_FUZZ_TARGET selects the target.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

namespace keelson::fuzz {

using Target = void (*)(std::string_view input);

// Targets by name.
std::map<std::string_view, Target>& Targets();

struct Registration {
  Registration(std::string_view name, Target target) { Targets().emplace(name, target); }
};

// A property that does not hold crashes, as fuzzers expect.
#define FUZZ_CHECK(condition, text)                                                          \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n%s\n", __FILE__, __LINE__, #condition, \
                   std::string(text).c_str());                                               \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)

}  // namespace keelson::fuzz

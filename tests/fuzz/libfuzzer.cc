// The entry point that libFuzzer calls.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const keelson::fuzz::Target target = [] {
    const char* name = std::getenv("KEELSON_FUZZ_TARGET");
    auto found = keelson::fuzz::Targets().find(name ? name : "");
    if (found != keelson::fuzz::Targets().end()) return found->second;
    std::fprintf(stderr, "KEELSON_FUZZ_TARGET must be one of:\n");
    for (const auto& [known, unused] : keelson::fuzz::Targets()) {
      std::fprintf(stderr, "  %s\n", std::string(known).c_str());
    }
    std::exit(2);
  }();
  target({reinterpret_cast<const char*>(data), size});
  return 0;
}

#include "tests/fuzz/fuzz.h"

namespace keelson::fuzz {

std::map<std::string_view, Target>& Targets() {
  static std::map<std::string_view, Target> targets;
  return targets;
}

}  // namespace keelson::fuzz

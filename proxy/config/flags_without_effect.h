// Flags of upstream's kube-proxy that this one takes and that change nothing here. Each is named once, with
// the reason, in a warning at the start (docs/services.md has the table).
#pragma once

#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace keelson::proxy {

struct FlagWithoutEffect {
  enum class Form {
    kText,
    kSwitch,
    kField,  // sets a field of the configuration, and is added with those
  };
  const char* name;  // with dashes
  Form form;
  const char* why;
};

std::span<const FlagWithoutEffect> FlagsWithoutEffect();
// Adds those that set no field.
void AddFlagsWithoutEffect(CLI::App& app);
// Those that were given, after parsing.
std::vector<FlagWithoutEffect> GivenWithoutEffect(const CLI::App& app);

}  // namespace keelson::proxy

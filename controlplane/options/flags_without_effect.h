// Flags of upstream's kube-apiserver, kube-controller-manager and kube-scheduler without a counterpart here.
// They are accepted, so that command lines for those programs work; a flag with a non-default value logs a
// warning at start. docs/flags.md has the same table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace keelson::controlplane {

struct FlagWithoutEffect {
  enum class Kind { kSwitch, kText, kList, kNumber, kDuration };
  std::string_view name;  // without dashes
  Kind kind;
  std::string_view standard;  // the value without effect: upstream's default, which is the behavior here
  std::string_view why;       // why the flag has no effect: a sentence without a full stop
};

std::span<const FlagWithoutEffect> FlagsWithoutEffect();

void AddFlagsWithoutEffect(CLI::App& app);
// The flags that were given with another value than the standard one, in the table's order. Call after
// parsing.
std::vector<const FlagWithoutEffect*> GivenWithoutEffect(const CLI::App& app);

}  // namespace keelson::controlplane

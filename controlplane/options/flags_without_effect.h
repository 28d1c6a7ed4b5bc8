// Flags of Kubernetes' own kube-apiserver, kube-controller-manager and kube-scheduler that have no
// counterpart here. They are taken, so that a command line written for those programs starts these; whoever
// asks for something by one is told at start that nothing comes of it. docs/flags.md has the same table, for
// people.
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
  std::string_view standard;  // the value that asks for nothing: upstream's default, and what is done here
  std::string_view why;       // there is no effect: a sentence without a full stop
};

std::span<const FlagWithoutEffect> FlagsWithoutEffect();

void AddFlagsWithoutEffect(CLI::App& app);
// After parsing: those that were given with another value than the standard one, in the table's order.
std::vector<const FlagWithoutEffect*> GivenWithoutEffect(const CLI::App& app);

}  // namespace keelson::controlplane

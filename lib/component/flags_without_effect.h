// Flags of Kubernetes' own programs that have no counterpart here. A program takes them, so that a command
// line written for its twin starts it. A set flag without effect gets a warning at start: nothing comes
// of it, and why. Each program has one table, which its documentation repeats.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace keelson::component {

// Of FlagWithoutEffect::standard: every value asks for something.
inline constexpr std::string_view kAnyValue{};

struct FlagWithoutEffect {
  enum class Kind { kSwitch, kText, kList, kNumber, kDuration };
  std::string_view name;  // without dashes
  Kind kind;
  std::string_view standard;  // the value that asks for nothing: upstream's default, and what is done here
  std::string_view why;       // there is no effect: a sentence without a full stop
};
using FlagsWithoutEffect = std::span<const FlagWithoutEffect>;

// Adds those that `app` does not have yet (a flag may set a field that nothing reads). Help has them all in one
// group, with the reason.
void AddFlagsWithoutEffect(CLI::App& app, FlagsWithoutEffect flags);
// After parsing: those that were given with another value than the standard one, in the table's order.
std::vector<const FlagWithoutEffect*> GivenWithoutEffect(const CLI::App& app, FlagsWithoutEffect flags);
// Logs a warning for each.
void TellFlagsWithoutEffect(const std::vector<const FlagWithoutEffect*>& given);

}  // namespace keelson::component

// The command line as Kubernetes' programs read it (Go's pflag), where CLI11 reads it otherwise:
//
//   --flag=       the empty value; CLI11 would take the next word for it
//   --switch=     an error, as is an empty number: CLI11 would take them for true and 0
//   --flag a b    one value a flag: b is a separate argument, and an error where none is expected
//   -v=2          the same as -v 2
//   -v=2 -v=3     the last one counts: CLI11 would refuse the second
//   --flag_name   the same as --flag-name
//
// Errors have pflag's texts: unknown flag: --x; flag needs an argument: --x; invalid argument "y" for
// "--x" flag: why.
#pragma once

#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace keelson {

// nullopt: go on. Else what to exit with: 0 when help or the version was asked for, and told; 1 after an
// error, which is printed too.
std::optional<int> ParseFlags(CLI::App& app, int argc, const char* const* argv);
// The same; `arguments` are without the program's name.
std::optional<int> ParseFlags(CLI::App& app, const std::vector<std::string>& arguments, std::ostream& out,
                              std::ostream& err);

// After parsing: "name=value" of each flag, as given or by default; without help and version.
std::vector<std::string> FlagsOf(const CLI::App& app);
// The same by name, as /flagz has them (component_pages.h).
std::map<std::string, std::string> FlagsByName(const std::vector<std::string>& flags);

}  // namespace keelson

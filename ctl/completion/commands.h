// The verbs and flags of a command line, as data.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace keelson::ctl {

struct CommandFlag {
  std::vector<std::string> names;  // "-o", "--output"
  std::string help;
  bool takes_value = false;
};
struct CommandArgument {
  std::string name, help;
  bool required = false, several = false;
};
struct Command {
  std::string name, help;
  std::vector<std::string> aliases;
  std::vector<CommandArgument> arguments;  // positional, in order
  std::vector<CommandFlag> flags;
  std::vector<Command> commands;
};

// Of `app` and everything below it; hidden ones are left out.
Command CommandsOf(const CLI::App& app);

}  // namespace keelson::ctl

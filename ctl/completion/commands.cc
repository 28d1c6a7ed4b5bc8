#include "ctl/completion/commands.h"

#include <CLI/CLI.hpp>

namespace keelson::ctl {

Command CommandsOf(const CLI::App& app) {
  Command out{app.get_name(), app.get_description(), app.get_aliases(), {}, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    if (!option->nonpositional()) {
      out.arguments.push_back({option->get_name(true), option->get_description(), option->get_required(),
                               option->get_expected_max() > 1});
      continue;
    }
    CommandFlag& flag = out.flags.emplace_back();
    for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
    flag.help = option->get_description();
    flag.takes_value = option->get_items_expected_max() > 0;
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) out.commands.push_back(CommandsOf(*command));
  }
  return out;
}

}  // namespace keelson::ctl

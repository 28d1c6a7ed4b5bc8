// nodectl completion bash|zsh|fish|man
#include <CLI/CLI.hpp>
#include <iostream>

#include "ctl/completion/man_page.h"
#include "ctl/completion/shells.h"
#include "ctl/completion_verb.h"

namespace keelson::ctl {

void AddCompletion(CLI::App& app, Run& chosen) {
  auto shell = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand(
      "completion",
      "Print a script that lets a shell complete nodectl's command lines, or their manual page");
  verb->add_option("shell", *shell, "bash, zsh or fish; man: the manual page nodectl-commands(8)")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish", "man"}));
  verb->callback([shell, &app, &chosen] {
    chosen = [shell, &app](const Settings&) -> Result<int> {
      const Command program = CommandsOf(app);
      std::cout << (*shell == "bash"   ? BashCompletion(program)
                    : *shell == "zsh"  ? ZshCompletion(program)
                    : *shell == "fish" ? FishCompletion(program)
                                       : ManPage(program));
      return 0;
    };
  });
}

}  // namespace keelson::ctl

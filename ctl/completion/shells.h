// Scripts that let shells complete a command line.
#pragma once

#include <string>

#include "ctl/completion/commands.h"

namespace keelson::ctl {

// For `source <(nodectl completion bash)`, or a file in the shell's own folder of completions. Verbs and flags are
// completed, with their help where the shell shows it; file names after them.
std::string BashCompletion(const Command& program);
std::string ZshCompletion(const Command& program);
std::string FishCompletion(const Command& program);

}  // namespace keelson::ctl

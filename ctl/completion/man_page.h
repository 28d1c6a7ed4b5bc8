// The manual page of a command line.
#pragma once

#include <string>

#include "ctl/completion/commands.h"

namespace keelson::ctl {

// Page PROGRAM-commands(8), in the macros of man(7): each verb with its arguments and flags, in the order of the help. It has no
// date, so that it changes with the commands alone.
std::string ManPage(const Command& program);

}  // namespace keelson::ctl

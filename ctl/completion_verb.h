// nodectl completion
#pragma once

#include "ctl/verb.h"

namespace keelson::ctl {

// `app`: the whole command line, which the scripts complete. It and `chosen` must outlive the verb.
void AddCompletion(CLI::App& app, Run& chosen);

}  // namespace keelson::ctl

// crictl's verbs of nodectl, and its flags before the verb.
#pragma once

#include <functional>

#include "ctl/verb.h"

namespace keelson::ctl {

// Call the result after parsing: it is kInvalid when these flags stand before a verb that does not talk to the
// container runtime. `app` has nodectl's --output already; it and `chosen` must outlive what is added.
std::function<Result<>()> AddCriVerbs(CLI::App& app, Run& chosen);

}  // namespace keelson::ctl

// kube-controlplane's command line.
#pragma once

#include "controlplane/options/options.h"

namespace CLI {
class App;
}

namespace keelson::controlplane {

// Declares all server flags, with upstream's names and defaults where they exist there.
void AddFlags(CLI::App& app, Options& options);

// Sets what depends on which flags were given. Call after parsing.
void FinishOptions(const CLI::App& app, Options& options);

// kInvalid for a gate that is set and would make clients expect of the API server what it does not do. Gates without effect
// have a warning instead.
Result<> CheckServerGates(const Options& options);

}  // namespace keelson::controlplane

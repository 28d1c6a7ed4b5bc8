// kube-controlplane's command line.
#pragma once

#include "controlplane/options/options.h"

namespace CLI {
class App;
}

namespace keelson::controlplane {

// All flags of the server itself; upstream's names and defaults where upstream has them.
void AddFlags(CLI::App& app, Options& options);

// What depends on which flags were given. After parsing.
void FinishOptions(const CLI::App& app, Options& options);

// "name=value" of each, as given or by default.
std::vector<std::string> FlagsOf(const CLI::App& app);

}  // namespace keelson::controlplane

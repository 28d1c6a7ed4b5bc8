// /statusz and /flagz, pages for people as every Kubernetes component has them, and what is below /debug/.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/apiserver/flowcontrol/controller.h"

namespace keelson::apiserver {

class DebugPages {
 public:
  struct Options {
    std::vector<std::string> flags;                 // "name=value" of all flags
    std::vector<std::string> paths;                 // what /statusz points to
    bool profiling = true;                          // /debug/pprof/ and /debug/flags/v
    bool statusz = true, flagz = true;              // the pages of these names
    const flowcontrol::Controller* flow = nullptr;  // null: no pages about it
  };
  explicit DebugPages(Options options);
  // false: none of them.
  bool Handle(Context& context) const;

 private:
  bool HandleFlow(Context& context) const;
  bool HandleProfiling(Context& context) const;

  const Options options_;
  const std::map<std::string, std::string> flags_;
  const WallTime started_;
};

}  // namespace keelson::apiserver

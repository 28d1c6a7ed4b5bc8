// /statusz and /flagz, and the pages below /debug/.
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
    std::vector<std::string> paths;                 // paths listed on /statusz
    bool profiling = true;                          // /debug/pprof/ and /debug/flags/v
    bool statusz = true, flagz = true;              // serve these pages
    const flowcontrol::Controller* flow = nullptr;  // null: no priority and fairness pages
  };
  explicit DebugPages(Options options);
  // Returns false for other paths.
  bool Handle(Context& context) const;

 private:
  bool HandleFlow(Context& context) const;
  bool HandleProfiling(Context& context) const;

  const Options options_;
  const std::map<std::string, std::string> flags_;
  const WallTime started_;
};

}  // namespace keelson::apiserver

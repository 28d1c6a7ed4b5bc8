// /statusz and /flagz: pages for people, as every Kubernetes component has them.
#pragma once

#include <string>
#include <vector>

#include "controlplane/apiserver/handlers/context.h"

namespace keelson::apiserver {

class DebugPages {
 public:
  // `flags`: "name=value" of all flags; `paths`: what /statusz points to.
  DebugPages(std::vector<std::string> flags, std::vector<std::string> paths);
  // false: neither of them.
  bool Handle(Context& context) const;

 private:
  std::string Status() const;

  const std::vector<std::string> flags_, paths_;
  const WallTime started_;
};

}  // namespace keelson::apiserver

// Choosing addresses: what is asked for, what is held already, or the next free one.
#pragma once

#include <vector>

#include "cni/host-local/config.h"
#include "cni/host-local/store.h"

namespace keelson::cni {

struct Choice {
  IpAddress address;
  const Range* range;  // of the configuration
  bool held;           // by this container already
  bool searched;       // the next search goes on behind it
};

// One address of each range set, none of them reserved yet. `held`: what the container has. The error names
// the range set, in the reference plugin's words.
Outcome<std::vector<Choice>> Choose(Store& store, const HostLocalConfig& config,
                                    const std::vector<IpAddress>& held);

}  // namespace keelson::cni

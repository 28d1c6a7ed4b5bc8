// Chooses addresses: the requested one, one that the container already holds, or the next free one.
#pragma once

#include <vector>

#include "cni/host-local/config.h"
#include "cni/host-local/store.h"

namespace keelson::cni {

struct Choice {
  IpAddress address;
  const Range* range;  // in the configuration
  bool held;           // already by this container
  bool searched;       // the next search starts after it
};

// Chooses one address from each range set and reserves none. `held`: the container's present addresses. The
// error names the range set, in the reference plugin's words.
Outcome<std::vector<Choice>> Choose(Store& store, const HostLocalConfig& config,
                                    const std::vector<IpAddress>& held);

}  // namespace keelson::cni

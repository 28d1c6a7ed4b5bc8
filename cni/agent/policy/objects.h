// Reads the objects that network policies depend on from protobuf bytes, without message types: the parts that
// matter are small, and the types of a Pod would take more memory than all Pods of a cluster.
#pragma once

#include <string>
#include <string_view>

#include "cni/policy/objects.h"
#include "lib/base/error.h"

namespace keelson::cni::agent {

template <typename T>
struct Parsed {
  std::string key;  // "NAMESPACE/NAME", or the name of a Namespace
  std::string resource_version;
  T value;
};

// Errors only when the bytes are not protobuf.
Result<Parsed<policy::Pod>> ParsePod(std::string_view raw);
Result<Parsed<policy::Labels>> ParseNamespace(std::string_view raw);
// A rule with a part that cannot be understood permits nothing; `problems` says why. A pod selector of the
// policy itself that cannot be understood selects more pods, not fewer.
Result<Parsed<policy::Policy>> ParsePolicy(std::string_view raw);

}  // namespace keelson::cni::agent

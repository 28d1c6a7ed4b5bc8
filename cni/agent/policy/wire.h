// Parts of API objects in protobuf that several kinds share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cni/policy/objects.h"
#include "lib/client/wire.h"

namespace keelson::cni::agent {

struct Metadata {
  std::string name, ns, uid, resource_version;
  std::string mirror;  // annotation kubernetes.io/config.mirror
  int64_t created = 0;
  bool deleted = false;  // deletionTimestamp is set
  policy::Labels labels;
};
Result<Metadata> ParseMetadata(std::string_view raw);

// A map's entry: two strings.
Result<std::pair<std::string, std::string>> ParseEntry(std::string_view raw);
Result<policy::Selector> ParseSelector(std::string_view raw);
// Of a label selector's requirement; kNothing for one that is not known.
policy::Selector::Op OperatorOf(std::string_view name);
// TCP, UDP or SCTP; empty is TCP. Nothing for others.
std::optional<uint8_t> ProtocolNumber(std::string_view name);

}  // namespace keelson::cni::agent

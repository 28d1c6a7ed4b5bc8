#include "lib/dataplane/policy_sets.h"

namespace keelson::dataplane {
namespace {

using nft::Type;

Type AddressType(bool v4) { return v4 ? Type::kIpv4Addr : Type::kIpv6Addr; }
std::string Named(const char* base, bool v4) { return std::string(base) + (v4 ? "4" : "6"); }

}  // namespace

nft::Table PolicyTable() { return {nft::Family::kInet, kPolicyTableName}; }
nft::Table PolicyPortsTable() { return {nft::Family::kBridge, kPolicyTableName}; }

nft::Set AttachedPods(bool v4) {
  return {.name = Named("attached", v4), .key = {AddressType(v4)}, .data = {Type::kMark}};
}
nft::Set ReadyPods(bool v4) { return {.name = Named("ready", v4), .key = {AddressType(v4)}}; }
nft::Set PodPorts() { return {.name = "ports", .key = {Type::kIfname}}; }
nft::Set CheckedPorts() { return {.name = "checked-ports", .key = {Type::kIfname}}; }
nft::Set PodSources(bool v4) {
  return {.name = Named("sources", v4), .key = {Type::kIfname, AddressType(v4)}};
}

}  // namespace keelson::dataplane

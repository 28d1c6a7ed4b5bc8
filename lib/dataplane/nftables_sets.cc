#include "lib/dataplane/nftables_sets.h"

#include <array>
#include <chrono>
#include <vector>

namespace keelson::dataplane {
namespace {

using nft::Type;

// Elements of the affinity sets carry their Service's timeout; this is what the set's declaration needs.
constexpr std::chrono::milliseconds kSetTimeout = std::chrono::hours(3);

std::array<nft::Set, kSetCount> MakeSets(bool v4) {
  Type ip = v4 ? Type::kIpv4Addr : Type::kIpv6Addr;
  std::vector<Type> vip = {ip, Type::kInetProto, Type::kInetService};
  std::vector<Type> node_port = {Type::kInetProto, Type::kInetService};
  auto with = [](std::vector<Type> types, std::vector<Type> more) {
    types.insert(types.end(), more.begin(), more.end());
    return types;
  };
  std::vector<Type> backend = {ip, Type::kInetService};
  std::array<nft::Set, kSetCount> sets;
  sets[kServices] = {.name = "services", .key = vip};
  sets[kEndpoints] = {.name = "endpoints", .key = with(vip, {Type::kMark}), .data = backend};
  sets[kNodePorts] = {.name = "nodeports", .key = node_port};
  sets[kNodePortEndpoints] = {
      .name = "nodeport-endpoints", .key = with(node_port, {Type::kMark}), .data = backend};
  sets[kNodePortIps] = {.name = "nodeport-ips", .key = {ip}};
  sets[kClusterIps] = {.name = "cluster-ips", .key = {ip}};
  sets[kRejectServices] = {.name = "reject-services", .key = vip};
  sets[kDropServices] = {.name = "drop-services", .key = vip};
  sets[kRejectNodePorts] = {.name = "reject-nodeports", .key = node_port};
  sets[kDropNodePorts] = {.name = "drop-nodeports", .key = node_port};
  sets[kHairpin] = {.name = "hairpin", .key = {ip, ip}};
  sets[kLocalEndpoints] = {.name = "local-endpoints", .key = {ip}};
  sets[kLimited] = {.name = "limited", .key = vip};
  sets[kSourceRanges] = {.name = "source-ranges", .key = with(vip, {ip}), .interval = true};
  sets[kAffinity] = {.name = "affinity",
                     .key = with({ip}, with(vip, {Type::kMark})),
                     .dynamic = true,
                     .timeout = kSetTimeout};
  sets[kNodePortAffinity] = {.name = "nodeport-affinity",
                             .key = with({ip}, with(node_port, {Type::kMark})),
                             .dynamic = true,
                             .timeout = kSetTimeout};
  return sets;
}

}  // namespace

const nft::Set& SetOf(SetId id, bool v4) {
  static const auto kV4 = MakeSets(true), kV6 = MakeSets(false);
  return (v4 ? kV4 : kV6)[id];
}

}  // namespace keelson::dataplane

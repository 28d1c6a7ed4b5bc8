#include "proxy/model/node_facts.h"

#include "lib/api/types.h"

namespace keelson::proxy {
namespace {

constexpr char kZoneLabel[] = "topology.kubernetes.io/zone";
constexpr char kDeletionTaint[] = "ToBeDeletedByClusterAutoscaler";

}  // namespace

NodeFacts FactsOf(const corev1::Node& node) {
  NodeFacts out;
  auto zone = node.metadata().labels().find(kZoneLabel);
  if (zone != node.metadata().labels().end()) out.zone = zone->second;
  for (const auto& address : node.status().addresses()) {
    Result<IpAddress> ip = IpAddress::Parse(address.address());
    if (address.type() == "InternalIP" && ip) out.ips.push_back(*ip);
  }
  for (const std::string& text : node.spec().pod_cidrs()) {
    if (Result<IpPrefix> cidr = IpPrefix::Parse(text)) out.pod_cidrs.push_back(cidr->Masked());
  }
  return out;
}

bool IsEligible(const corev1::Node& node) {
  if (node.metadata().has_deletion_timestamp()) return false;
  for (const auto& taint : node.spec().taints()) {
    if (taint.key() == kDeletionTaint) return false;
  }
  return true;
}

}  // namespace keelson::proxy

#include "cni/agent/node.h"

#include "lib/client/wire.h"

namespace keelson::cni::agent {
namespace {

using client::ForEachField;

// Field numbers of core/v1 Node and its parts.
constexpr int kMetadata = 1, kSpec = 2, kStatus = 3;
constexpr int kName = 1, kResourceVersion = 6, kLabels = 11, kAnnotations = 12;
constexpr int kPodCidr = 1, kPodCidrs = 7;
constexpr int kAddresses = 5;

// Two strings, fields 1 and 2: a map entry, or a NodeAddress.
Result<std::pair<std::string_view, std::string_view>> ParsePair(std::string_view raw) {
  std::pair<std::string_view, std::string_view> out;
  KEELSON_RETURN_IF_ERROR(ForEachField(raw, [&](int number, std::string_view payload) -> Result<> {
    if (number == 1) out.first = payload;
    if (number == 2) out.second = payload;
    return {};
  }));
  return out;
}

Result<> ParseMetadata(std::string_view raw, ParsedNode& out) {
  return ForEachField(raw, [&](int number, std::string_view payload) -> Result<> {
    if (number == kName) out.info.name = payload;
    if (number == kResourceVersion) out.resource_version = payload;
    if (number != kAnnotations && number != kLabels) return {};
    KEELSON_ASSIGN_OR_RETURN(auto entry, ParsePair(payload));
    if (number == kLabels) {
      out.info.as_peer.labels.emplace(entry.first, entry.second);
      return {};
    }
    if (entry.first == kWireguardKeyAnnotation) out.info.wireguard_key = entry.second;
    return {};
  });
}

Result<> ParseSpec(std::string_view raw, NodeInfo& out) {
  std::string_view single;
  std::vector<std::string_view> texts;
  KEELSON_RETURN_IF_ERROR(ForEachField(raw, [&](int number, std::string_view payload) -> Result<> {
    if (number == kPodCidr) single = payload;
    if (number == kPodCidrs) texts.push_back(payload);
    return {};
  }));
  if (texts.empty() && !single.empty()) texts.push_back(single);
  for (std::string_view text : texts) {
    if (Result<IpPrefix> cidr = IpPrefix::Parse(text)) {
      out.pod_cidrs.push_back(cidr->Masked());
    } else {
      out.ignored.push_back("podCIDR \"" + std::string(text) + "\": " + cidr.error().message());
    }
  }
  return {};
}

Result<> ParseStatus(std::string_view raw, NodeInfo& out) {
  return ForEachField(raw, [&](int number, std::string_view payload) -> Result<> {
    if (number != kAddresses) return {};
    KEELSON_ASSIGN_OR_RETURN(auto address, ParsePair(payload));
    // Names of hosts are among them.
    const Result<IpAddress> ip = IpAddress::Parse(address.second);
    if (ip) out.as_peer.addresses.push_back(*ip);
    if (address.first != "InternalIP") return {};
    if (ip) {
      out.addresses.push_back(*ip);
    } else {
      out.ignored.push_back("InternalIP \"" + std::string(address.second) + "\": " + ip.error().message());
    }
    return {};
  });
}

}  // namespace

Result<policy::Node> PolicyNode(const std::shared_ptr<const NodeMap>& nodes, const std::string& name) {
  if (!nodes) return Error(Code::kUnavailable, "Nodes are not known yet");
  auto own = nodes->find(name);
  if (own == nodes->end()) return Error(Code::kUnavailable, "there is no Node " + name);
  if (own->second.pod_cidrs.empty()) return Error(Code::kUnavailable, "the Node has no pod CIDR yet");
  return policy::Node{name, own->second.pod_cidrs};
}

policy::ClusterNodes PolicyPeers(const NodeMap& nodes) {
  policy::ClusterNodes out;
  for (const auto& [name, node] : nodes) out.emplace(name, node.as_peer);
  return out;
}

Result<ParsedNode> ParseNode(std::string_view raw) {
  ParsedNode out;
  KEELSON_RETURN_IF_ERROR(ForEachField(raw, [&](int number, std::string_view payload) -> Result<> {
    if (number == kMetadata) return ParseMetadata(payload, out);
    if (number == kSpec) return ParseSpec(payload, out.info);
    if (number == kStatus) return ParseStatus(payload, out.info);
    return {};
  }));
  return out;
}

}  // namespace keelson::cni::agent

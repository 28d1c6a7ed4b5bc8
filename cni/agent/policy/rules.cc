// ParsePolicy() of objects.h.
#include <algorithm>

#include "cni/agent/policy/objects.h"
#include "cni/agent/policy/wire.h"

namespace keelson::cni::agent {
namespace {

using client::ForEachWireField;
using client::WireField;

constexpr int kMetadata = 1, kSpec = 2;
// NetworkPolicySpec; rules of both directions; NetworkPolicyPort, IntOrString, NetworkPolicyPeer, IPBlock.
constexpr int kPodSelector = 1, kIngress = 2, kEgress = 3, kPolicyTypes = 4;
constexpr int kRulePorts = 1, kRulePeers = 2;
constexpr int kProtocol = 1, kPort = 2, kEndPort = 3;
constexpr int kKindOfPort = 1, kIntValue = 2, kStrValue = 3;
constexpr int kPeerPods = 1, kPeerNamespaces = 2, kIpBlock = 3;
constexpr int kCidr = 1, kExcept = 2;

bool Understood(const policy::Selector& selector) {
  return std::none_of(selector.requirements.begin(), selector.requirements.end(),
                      [](const auto& r) { return r.op == policy::Selector::Op::kNothing; });
}

// A part of one rule; `problem` is set when it cannot be understood.
class RuleReader {
 public:
  explicit RuleReader(std::string& problem) : problem_(problem) {}

  Result<policy::Port> ReadPort(std::string_view raw) {
    policy::Port out;
    std::string_view protocol;
    bool named = false, given = false;
    uint64_t number = 0, end = 0;
    KEELSON_RETURN_IF_ERROR(ForEachWireField(raw, [&](const WireField& field) -> Result<> {
      if (field.number == kProtocol) protocol = field.payload;
      if (field.number == kEndPort) end = field.value;
      if (field.number != kPort) return {};
      given = true;
      return ForEachWireField(field.payload, [&](const WireField& part) -> Result<> {
        if (part.number == kKindOfPort) named = part.value == 1;
        if (part.number == kIntValue) number = part.value;
        if (part.number == kStrValue) out.name = part.payload;
        return {};
      });
    }));
    std::optional<uint8_t> known = ProtocolNumber(protocol);
    if (!known) problem_ = "unknown protocol \"" + std::string(protocol) + "\"";
    out.protocol = known.value_or(0);
    if (!named) out.name.clear();
    if (named && (out.name.empty() || end != 0)) problem_ = "invalid named port";
    if (named || !given) return out;
    if (number == 0 || number > 65535 || end > 65535 || (end != 0 && end < number)) problem_ = "invalid port";
    out.first = static_cast<uint16_t>(number);
    out.last = static_cast<uint16_t>(end != 0 ? end : number);
    return out;
  }

  Result<policy::Peer> ReadPeer(std::string_view raw) {
    policy::Peer out;
    KEELSON_RETURN_IF_ERROR(ForEachWireField(raw, [&](const WireField& field) -> Result<> {
      if (field.number == kPeerPods) {
        KEELSON_ASSIGN_OR_RETURN(out.pods, ParseSelector(field.payload));
      } else if (field.number == kPeerNamespaces) {
        KEELSON_ASSIGN_OR_RETURN(out.namespaces, ParseSelector(field.payload));
      } else if (field.number == kIpBlock) {
        KEELSON_ASSIGN_OR_RETURN(out.block, ReadBlock(field.payload));
      }
      return {};
    }));
    if (!out.pods && !out.namespaces && !out.block) problem_ = "a peer without any selector";
    if (out.block && (out.pods || out.namespaces)) problem_ = "a peer with an ipBlock and selectors";
    if ((out.pods && !Understood(*out.pods)) || (out.namespaces && !Understood(*out.namespaces))) {
      problem_ = "unknown operator of a selector";
    }
    return out;
  }

 private:
  Result<policy::Block> ReadBlock(std::string_view raw) {
    policy::Block out;
    bool given = false;
    auto prefix = [&](std::string_view text) -> std::optional<IpPrefix> {
      Result<IpPrefix> parsed = IpPrefix::Parse(text);
      if (parsed) return parsed->Masked();
      problem_ = "invalid CIDR \"" + std::string(text) + "\"";
      return std::nullopt;
    };
    KEELSON_RETURN_IF_ERROR(ForEachWireField(raw, [&](const WireField& field) -> Result<> {
      if (field.number != kCidr && field.number != kExcept) return {};
      std::optional<IpPrefix> parsed = prefix(field.payload);
      if (!parsed) return {};
      if (field.number == kExcept) out.except.push_back(*parsed);
      if (field.number == kCidr) out.cidr = *parsed;
      given = given || field.number == kCidr;
      return {};
    }));
    if (!given && problem_.empty()) problem_ = "an ipBlock without a CIDR";
    return out;
  }

  std::string& problem_;
};

Result<> ParseRule(std::string_view raw, std::string_view where, std::vector<policy::Rule>& into,
                   policy::Policy& policy) {
  std::string problem;
  RuleReader reader(problem);
  policy::Rule out;
  KEELSON_RETURN_IF_ERROR(ForEachWireField(raw, [&](const WireField& field) -> Result<> {
    if (field.number == kRulePorts) {
      KEELSON_ASSIGN_OR_RETURN(policy::Port port, reader.ReadPort(field.payload));
      out.ports.push_back(std::move(port));
    }
    if (field.number == kRulePeers) {
      KEELSON_ASSIGN_OR_RETURN(policy::Peer peer, reader.ReadPeer(field.payload));
      out.peers.push_back(std::move(peer));
    }
    return {};
  }));
  if (problem.empty()) {
    into.push_back(std::move(out));
  } else {
    policy.problems.push_back("a rule of " + std::string(where) + " permits nothing: " + problem);
  }
  return {};
}

Result<> ParseSpec(std::string_view raw, policy::Policy& out) {
  std::vector<std::string_view> types;
  bool has_egress = false;
  KEELSON_RETURN_IF_ERROR(ForEachWireField(raw, [&](const WireField& field) -> Result<> {
    switch (field.number) {
      case kPodSelector: {
        KEELSON_ASSIGN_OR_RETURN(out.pods, ParseSelector(field.payload));
        return {};
      }
      case kIngress:
        return ParseRule(field.payload, "ingress", out.ingress, out);
      case kEgress:
        has_egress = true;
        return ParseRule(field.payload, "egress", out.egress, out);
      case kPolicyTypes:
        types.push_back(field.payload);
        return {};
      default:
        return {};
    }
  }));
  auto listed = [&](std::string_view type) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  // The API server fills policyTypes in; objects from before it did may lack it.
  out.isolates_ingress = types.empty() || listed("Ingress");
  out.isolates_egress = types.empty() ? has_egress : listed("Egress");
  if (!Understood(out.pods)) {
    std::erase_if(out.pods.requirements,
                  [](const auto& r) { return r.op == policy::Selector::Op::kNothing; });
    out.problems.push_back("an unknown operator of podSelector is left out");
  }
  return {};
}

}  // namespace

Result<Parsed<policy::Policy>> ParsePolicy(std::string_view raw) {
  Parsed<policy::Policy> out;
  KEELSON_RETURN_IF_ERROR(ForEachWireField(raw, [&](const WireField& field) -> Result<> {
    if (field.number == kSpec) return ParseSpec(field.payload, out.value);
    if (field.number != kMetadata) return {};
    KEELSON_ASSIGN_OR_RETURN(Metadata metadata, ParseMetadata(field.payload));
    out.key = metadata.ns + "/" + metadata.name;
    out.resource_version = std::move(metadata.resource_version);
    out.value.ns = std::move(metadata.ns);
    out.value.name = std::move(metadata.name);
    return {};
  }));
  return out;
}

}  // namespace keelson::cni::agent

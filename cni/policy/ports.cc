#include "cni/policy/ports.h"

#include <linux/if_packet.h>

#include <algorithm>

#include "lib/dataplane/policy_sets.h"

namespace keelson::cni::policy {
namespace {

constexpr char kChain[] = "prerouting";
constexpr int kBeforeEverything = -300;  // NF_BR_PRI_NAT_DST_BRIDGED: also before br_netfilter
constexpr char kIcmpv6 = 58;

const std::string kArp("\x08\x06", 2), kIpv4("\x08\x00", 2), kIpv6("\x86\xdd", 2);
// Listener reports and queries, router and neighbour solicitation, neighbour advertisement. No router
// advertisements and no redirects: no pod is a router.
constexpr unsigned char kLinkMessages[] = {131, 132, 133, 135, 136, 143};

nft::Rule OfType(const std::string& type) {
  nft::Rule rule(kChain);
  rule.Load(0, nft::Field::kEtherType).Equal(0, type);
  return rule;
}

std::vector<nft::Rule> Rules(const std::optional<std::string>& bridge) {
  const nft::Verdict accept{nft::Verdict::Kind::kAccept}, drop{nft::Verdict::Kind::kDrop};
  std::vector<nft::Rule> out;
  nft::Rule others(kChain);
  others.Load(0, nft::Field::kIifName).NotInSet(0, dataplane::PodPorts().name);
  out.push_back(std::move(others.Finish({nft::Verdict::Kind::kReturn})));
  out.push_back(std::move(OfType(kArp).Finish(accept)));
  for (unsigned char type : kLinkMessages) {
    nft::Rule rule = OfType(kIpv6);
    rule.Load(1, nft::Field::kL4Proto).Equal(1, std::string(1, kIcmpv6));
    rule.Load(2, nft::Field::kIcmpType).Equal(2, std::string(1, static_cast<char>(type)));
    out.push_back(std::move(rule.Finish(accept)));
  }
  for (bool v4 : {true, false}) {
    nft::Rule rule = OfType(v4 ? kIpv4 : kIpv6);
    rule.Load(4, nft::Field::kIifName).InSet(4, dataplane::CheckedPorts().name);
    rule.Load(8, v4 ? nft::Field::kIpSaddr : nft::Field::kIp6Saddr);
    rule.NotInSet(4, dataplane::PodSources(v4).name);
    out.push_back(std::move(rule.Counter().Finish(drop)));
  }
  for (bool v4 : {true, false}) {
    if (!bridge) break;
    nft::Rule rule = OfType(v4 ? kIpv4 : kIpv6);
    rule.Immediate(4, *bridge).SetEtherDaddr(4);
    rule.Immediate(8, std::string(1, PACKET_HOST)).SetPacketType(8);
    out.push_back(std::move(rule.Finish(accept)));
  }
  nft::Rule rest(kChain);
  out.push_back(std::move(rest.Finish(drop)));
  return out;
}

// The name of a port in the key of an element.
std::string PortOf(const std::string& key) { return key.substr(0, std::min(key.find('\0'), size_t{16})); }

}  // namespace

nft::Ruleset PortRules(const std::optional<std::string>& bridge, const std::set<std::string>& links,
                       const std::optional<nft::Ruleset>& found) {
  nft::Ruleset out{.table = dataplane::PolicyPortsTable()};
  out.chains[kChain] = {
      {kChain, nft::Hook{nft::HookType::kFilter, nft::HookPoint::kPrerouting, kBeforeEverything}},
      Rules(bridge)};
  for (const nft::Set& set : {dataplane::PodPorts(), dataplane::CheckedPorts(), dataplane::PodSources(true),
                              dataplane::PodSources(false)}) {
    auto& contents = out.sets[set.name];
    contents.set = set;
    if (!found) continue;
    auto there = found->sets.find(set.name);
    if (there == found->sets.end() || !(there->second.set == set)) continue;
    for (const auto& [key, element] : there->second.elements) {
      if (links.contains(PortOf(key))) contents.elements.emplace(key, element);
    }
  }
  auto& ports = out.sets[dataplane::PodPorts().name].elements;
  for (const std::string& link : links) {
    std::string key = nft::Key().Ifname(link).bytes();
    ports.try_emplace(key, nft::Element{.key = key});
  }
  return out;
}

}  // namespace keelson::cni::policy

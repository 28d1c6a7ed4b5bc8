#include "tests/netns/upstream_shape.h"

namespace keelson::netns {
namespace {

using nft::Field;
using nft::Key;
using nft::Rule;

constexpr uint32_t kMasquerade = 0x4000;

// Jumps to mark-for-masquerade what comes from `ip`, or with `not_pods` what does not come from pods.
Rule MarkIf(const std::string& chain, const std::string& bytes, bool equal) {
  Rule rule(chain);
  rule.Load(0, Field::kIpSaddr);
  equal ? rule.Equal(0, bytes)
        : rule.Mask(0, {'\xff', '\0', '\0', '\0'}, std::string(4, '\0')).NotEqual(0, bytes);
  return rule.Finish(nft::Jump("mark-for-masquerade"));
}

}  // namespace

nft::Transaction UpstreamShape(const std::vector<proxy::ResolvedPort>& ports) {
  nft::Transaction t({nft::Family::kIpv4, "upstream-shape"});
  t.AddTable();
  const nft::Set services{.name = "service-ips",
                          .key = {nft::Type::kIpv4Addr, nft::Type::kInetProto, nft::Type::kInetService},
                          .verdicts = true};
  t.AddSet(services);
  t.AddChain({.name = "mark-for-masquerade"});
  t.AddRule(Rule("mark-for-masquerade").MarkBits(kMasquerade));
  t.AddChain({.name = "services"});
  std::vector<nft::Element> dispatch;
  for (size_t i = 0; i < ports.size(); ++i) {
    const proxy::ResolvedPort& port = ports[i];
    const std::string service = "service-" + std::to_string(i);
    const nft::Set picks{.name = "pick-" + std::to_string(i), .key = {nft::Type::kMark}, .verdicts = true};
    t.AddSet(picks);
    std::vector<nft::Element> slots;
    for (size_t e = 0; e < port.cluster.size(); ++e) {
      const proxy::Backend& backend = port.cluster[e];
      const std::string chain = "endpoint-" + std::to_string(i) + "-" + std::to_string(e);
      t.AddChain({.name = chain});
      t.AddRule(MarkIf(chain, std::string(backend.ip.bytes()), true));
      Rule dnat(chain);
      dnat.Immediate(0, Key().Ip(backend.ip).bytes()).Immediate(1, Key().Port(backend.port).bytes());
      t.AddRule(dnat.Dnat(nft::Family::kIpv4, 0, 1));
      slots.push_back({.key = Key().Mark(static_cast<uint32_t>(e)).bytes(), .verdict = nft::Goto(chain)});
    }
    t.AddElements(picks, std::move(slots));
    t.AddChain({.name = service});
    t.AddRule(MarkIf(service, {'\x0a', '\0', '\0', '\0'}, false));
    Rule pick(service);
    t.AddRule(pick.Random(0, static_cast<uint32_t>(port.cluster.size())).VerdictMap(0, picks.name));
    dispatch.push_back(
        {.key =
             Key().Ip(port.service.cluster_ip).Proto(port.service.protocol).Port(port.service.port).bytes(),
         .verdict = nft::Goto(service)});
  }
  t.AddElements(services, std::move(dispatch));
  Rule lookup("services");
  lookup.Load(0, Field::kIpDaddr).Load(1, Field::kL4Proto).Load(2, Field::kDestinationPort);
  t.AddRule(lookup.VerdictMap(0, services.name));
  for (auto [name, point] : {std::pair("nat-prerouting", nft::HookPoint::kPrerouting),
                             std::pair("nat-output", nft::HookPoint::kOutput)}) {
    t.AddChain({.name = name, .hook = nft::Hook{nft::HookType::kNat, point, -100}});
    t.AddRule(Rule(name).Finish(nft::Jump("services")));
  }
  t.AddChain(
      {.name = "nat-postrouting", .hook = nft::Hook{nft::HookType::kNat, nft::HookPoint::kPostrouting, 100}});
  Rule masquerade("nat-postrouting");
  t.AddRule(masquerade.AnyBit(Field::kMark, kMasquerade).UnmarkBits(kMasquerade).Masquerade());
  return t;
}

}  // namespace keelson::netns

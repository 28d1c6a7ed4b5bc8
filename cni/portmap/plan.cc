#include "cni/portmap/plan.h"

#include <arpa/inet.h>

#include <cstring>

#include "cni/lib/label.h"

namespace keelson::cni {
namespace {

using nft::Field;
using nft::Type;

constexpr int kDestinationNat = -100, kSourceNat = 100;  // NF_IP_PRI_NAT_*
constexpr uint32_t kCtTranslated = 0x20;                 // IPS_DST_NAT
constexpr int kDatum = 8;                                // the register that maps write their data to
constexpr uint8_t kLocal = 2;                            // RTN_LOCAL

// Empty for the default settings.
std::string Suffix(const PortmapConfig& config) {
  std::string text;
  if (!config.snat) text += " snat=false";
  if (config.masq_all) text += " masqAll";
  if (config.mark_bit != 13) text += " bit " + std::to_string(config.mark_bit);
  for (const Condition& condition : config.conditions_v4) text += " v4 " + condition.ToString();
  for (const Condition& condition : config.conditions_v6) text += " v6 " + condition.ToString();
  return text.empty() ? "" : "-" + ShortHash(text);
}

nft::Set PortMap(const std::string& suffix, bool v4, bool addressed) {
  Type address = v4 ? Type::kIpv4Addr : Type::kIpv6Addr;
  nft::Set set{.name = std::string(addressed ? "addressed-" : "") + (v4 ? "ports4" : "ports6") + suffix};
  if (addressed) set.key.push_back(address);
  set.key.insert(set.key.end(), {Type::kInetProto, Type::kInetService});
  set.data = {address, Type::kInetService};
  return set;
}

nft::Set Near() { return {.name = "near", .key = {Type::kIfname}}; }

std::string NfProto(bool v4) {
  return std::string(1, static_cast<char>(v4 ? nft::Family::kIpv4 : nft::Family::kIpv6));
}
std::string Word(uint32_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

void Compare(nft::Rule& rule, Field field, const IpPrefix& prefix, bool equal) {
  size_t size = prefix.address().bytes().size();
  IpAddress ones = IpAddress::FromBytes(std::string(size, '\xff'));
  std::string mask(IpPrefix(ones, prefix.length()).Network().bytes());
  rule.Load(0, field).Mask(0, mask, std::string(size, '\0'));
  std::string network(prefix.Network().bytes());
  equal ? rule.Equal(0, network) : rule.NotEqual(0, network);
}

void Require(nft::Rule& rule, const Condition& condition, bool v4) {
  switch (condition.subject) {
    case Condition::Subject::kSource:
      return Compare(rule, v4 ? Field::kIpSaddr : Field::kIp6Saddr, condition.prefix, !condition.negated);
    case Condition::Subject::kDestination:
      return Compare(rule, v4 ? Field::kIpDaddr : Field::kIp6Daddr, condition.prefix, !condition.negated);
    case Condition::Subject::kInterface: {
      std::string name = nft::Key().Ifname(condition.interface).bytes();
      rule.Load(0, Field::kIifName);
      condition.negated ? rule.NotEqual(0, name) : rule.Equal(0, name);
    }
  }
}

// A rule up to the point where the packet's map entry is in the registers from kDatum on.
nft::Rule LookUp(const std::string& chain, const PortmapConfig& config, bool v4, const nft::Set& map) {
  nft::Rule rule(chain);
  rule.Load(0, Field::kNfProto).Equal(0, NfProto(v4));
  for (const Condition& condition : v4 ? config.conditions_v4 : config.conditions_v6) {
    Require(rule, condition, v4);
  }
  int next = 0;
  if (map.key.size() == 3) {
    Field destination = v4 ? Field::kIpDaddr : Field::kIp6Daddr;
    rule.Load(0, destination);
    next = nft::RegistersOf(destination);
  }
  return rule.Load(next, Field::kL4Proto).Load(next + 1, Field::kDestinationPort).Map(0, map.name, kDatum);
}

void AddMarkRules(nft::Transaction& t, const std::string& chain, const PortmapConfig& config) {
  uint32_t bit = 1u << config.mark_bit;
  if (config.masq_all) {
    nft::Rule all(chain);
    t.AddRule(all.MarkBits(bit));
    return;
  }
  nft::Rule near(chain);
  t.AddRule(near.Load(0, Field::kIifName).InSet(0, Near().name).MarkBits(bit));
  nft::Rule local(chain);
  local.Load(0, Field::kNfProto).Equal(0, NfProto(true));
  Compare(local, Field::kIpSaddr, *IpPrefix::Parse("127.0.0.0/8"), true);
  t.AddRule(local.MarkBits(bit));
}

void AddEntry(nft::Transaction& t, const std::string& chain, const std::string& target) {
  nft::Rule local(chain);
  local.Load(0, Field::kDaddrType).Equal(0, Word(kLocal));
  t.AddRule(local.Finish(nft::Jump(target)));
}

void AddBaseChains(nft::Transaction& t, const std::string& target, const PortmapConfig& config) {
  auto base = [&](const char* name, nft::HookPoint point, int priority) {
    t.AddChain({.name = name, .hook = nft::Hook{nft::HookType::kNat, point, priority}});
  };
  base("prerouting", nft::HookPoint::kPrerouting, kDestinationNat);
  base("output", nft::HookPoint::kOutput, kDestinationNat);
  base("postrouting", nft::HookPoint::kPostrouting, kSourceNat);
  AddEntry(t, "prerouting", target);
  AddEntry(t, "output", target);
  if (!config.snat && !config.masq_all) return;
  nft::Rule masquerade("postrouting");
  uint32_t bit = 1u << config.mark_bit;
  t.AddRule(masquerade.AnyBit(Field::kMark, bit)
                .AnyBit(Field::kCtStatus, kCtTranslated)
                .UnmarkBits(bit)
                .Masquerade());
}

nft::Key& PutAddress(nft::Key& key, const Mapping& mapping) {
  return mapping.HasAddress() ? key.Ip(*mapping.host_ip) : key;
}

uint16_t PortAt(const std::string& bytes, size_t offset) {
  uint16_t port;
  std::memcpy(&port, bytes.data() + offset, sizeof port);
  return ntohs(port);
}

}  // namespace

nft::Table PortmapTable() { return {nft::Family::kInet, "keelson-portmap"}; }

std::string HostPortsChain(const PortmapConfig& config) { return "hostports" + Suffix(config); }

void MakeChains(nft::Transaction& t, const PortmapConfig& config) {
  std::string suffix = Suffix(config), chain = HostPortsChain(config), mark = "mark" + suffix;
  t.AddTable();
  t.AddSet(Near());
  t.CreateChain({.name = chain});
  bool masquerades = config.snat || config.masq_all;
  if (masquerades) {
    t.AddChain({.name = mark});
    AddMarkRules(t, mark, config);
  }
  // Nothing routes ::1 to a container: leave such packets to listeners on this host.
  nft::Rule loopback(chain);
  loopback.Load(0, Field::kNfProto).Equal(0, NfProto(false));
  Compare(loopback, Field::kIp6Daddr, *IpPrefix::Parse("::1/128"), true);
  t.AddRule(loopback.Finish({nft::Verdict::Kind::kReturn}));
  for (bool v4 : {true, false}) {
    for (bool addressed : {true, false}) {
      nft::Set map = PortMap(suffix, v4, addressed);
      t.AddSet(map);
      if (masquerades) t.AddRule(LookUp(chain, config, v4, map).Finish(nft::Jump(mark)));
      t.AddRule(LookUp(chain, config, v4, map)
                    .Dnat(v4 ? nft::Family::kIpv4 : nft::Family::kIpv6, kDatum, kDatum + (v4 ? 1 : 4)));
    }
  }
  AddBaseChains(t, chain, config);
}

void AddNear(nft::Transaction& t, const std::string& ifname) {
  t.AddElements(Near(), {{.key = nft::Key().Ifname(ifname).bytes()}});
}

std::vector<PlannedElement> PlanElements(const PortmapConfig& config, const ContainerAddresses& addresses,
                                         const std::string& label) {
  std::vector<PlannedElement> out;
  for (const auto& container : {addresses.v4, addresses.v6}) {
    if (!container) continue;
    for (const Mapping& mapping : config.mappings) {
      if (!mapping.AppliesTo(container->is_v4())) continue;
      nft::Key key;
      PutAddress(key, mapping).Proto(mapping.protocol).Port(mapping.host_port);
      out.push_back({PortMap(Suffix(config), container->is_v4(), mapping.HasAddress()),
                     {.key = key.bytes(),
                      .data = nft::Key().Ip(*container).Port(mapping.container_port).bytes(),
                      .comment = label}});
    }
  }
  return out;
}

std::optional<MappedPort> ParseElement(const nft::Set& set, const nft::Element& element) {
  if (set.data.size() != 2 || set.key.size() < 2 || element.key.size() != nft::WidthOf(set.key) ||
      element.data.size() != nft::WidthOf(set.data)) {
    return std::nullopt;
  }
  size_t size = nft::SizeOf(set.data[0]), ports = element.key.size() - 8;
  return MappedPort{.protocol = static_cast<uint8_t>(element.key[ports]),
                    .host_port = PortAt(element.key, ports + 4),
                    .container_port = PortAt(element.data, size),
                    .container = IpAddress::FromBytes(element.data.substr(0, size))};
}

}  // namespace keelson::cni

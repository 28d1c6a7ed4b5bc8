#include "cni/bridge/masquerade.h"

#include <cstdio>

#include "lib/nft/kernel.h"

namespace keelson::cni {
namespace {

constexpr char kTable[] = "keelson-cni";
constexpr int kSourceNat = 100;  // NF_IP_PRI_NAT_SRC

std::string ChainName(const IpPrefix& subnet) {
  uint32_t hash = 2166136261u;  // FNV-1a: names must not hold colons
  for (unsigned char c : subnet.ToString()) hash = (hash ^ c) * 16777619u;
  char name[32];
  std::snprintf(name, sizeof name, "masquerade-%08x", hash);
  return name;
}

std::string MaskBytes(const IpPrefix& prefix) {
  std::string ones(prefix.address().bytes().size(), '\xff');
  return std::string(IpPrefix(IpAddress::FromBytes(ones), prefix.length()).Network().bytes());
}

// Loads an address into register 0 and compares the prefix.
void Compare(nft::Rule& rule, nft::Field field, const IpPrefix& prefix, bool equal) {
  std::string zero(prefix.address().bytes().size(), '\0');
  rule.Load(0, field).Mask(0, MaskBytes(prefix), zero);
  std::string network(prefix.Network().bytes());
  equal ? rule.Equal(0, network) : rule.NotEqual(0, network);
}

}  // namespace

Outcome<> EnsureMasquerade(const IpPrefix& subnet) {
  bool v4 = subnet.is_v4();
  nft::Transaction t({nft::Family::kInet, kTable});
  std::string chain = ChainName(subnet);
  KEELSON_ASSIGN_OR_RETURN(auto kernel, nft::OpenKernel());
  // Check first: a refused transaction takes the kernel some milliseconds.
  KEELSON_ASSIGN_OR_RETURN(bool there, kernel->HasChain(t.table(), chain));
  if (there) return {};
  t.AddTable();
  t.CreateChain(
      {.name = chain, .hook = nft::Hook{nft::HookType::kNat, nft::HookPoint::kPostrouting, kSourceNat}});
  nft::Rule rule(chain);
  rule.Load(0, nft::Field::kNfProto)
      .Equal(0, std::string(1, static_cast<char>(v4 ? nft::Family::kIpv4 : nft::Family::kIpv6)));
  Compare(rule, v4 ? nft::Field::kIpSaddr : nft::Field::kIp6Saddr, subnet, true);
  Compare(rule, v4 ? nft::Field::kIpDaddr : nft::Field::kIp6Daddr, subnet, false);
  KEELSON_ASSIGN_OR_RETURN(IpPrefix multicast, IpPrefix::Parse(v4 ? "224.0.0.0/4" : "ff00::/8"));
  Compare(rule, v4 ? nft::Field::kIpDaddr : nft::Field::kIp6Daddr, multicast, false);
  t.AddRule(rule.Masquerade());
  Result<> applied = kernel->Apply(t);
  if (!applied && !applied.error().Is(Code::kAlreadyExists)) return applied.error();
  return {};
}

}  // namespace keelson::cni

#include "cni/agent/masquerade.h"

#include "cni/agent/plan.h"
#include "lib/nft/diff.h"

namespace keelson::cni::agent {
namespace {

constexpr int kSourceNat = 100;  // NF_IP_PRI_NAT_SRC

nft::Table Table() { return {nft::Family::kInet, kNftTable}; }

nft::Rule InFamily(std::string chain, bool v4) {
  nft::Rule rule(std::move(chain));
  rule.Load(0, nft::Field::kNfProto).Equal(0, std::string(1, v4 ? '\x02' : '\x0a'));
  return rule;
}

// Continues the rule if the address in `field` is in `cidr`.
nft::Rule& Match(nft::Rule& rule, nft::Field field, const IpPrefix& cidr) {
  std::string zero(cidr.address().bytes().size(), '\0');
  std::string ones(zero.size(), '\xff');
  std::string mask(IpPrefix(IpAddress::FromBytes(ones), cidr.length()).Network().bytes());
  rule.Load(4, field);
  if (cidr.length() < cidr.address().bits()) rule.Mask(4, mask, zero);
  return rule.Equal(4, std::string(cidr.Network().bytes()));
}

}  // namespace

nft::Ruleset MasqueradeRules(const std::vector<IpPrefix>& own_pods, const std::vector<IpPrefix>& inside) {
  nft::Ruleset out{.table = Table()};
  auto& postrouting = out.chains["postrouting"];
  postrouting.chain = {"postrouting",
                       nft::Hook{nft::HookType::kNat, nft::HookPoint::kPostrouting, kSourceNat}};
  for (bool v4 : {true, false}) {
    std::string name = v4 ? "leaving" : "leaving6";
    std::vector<IpPrefix> stay = {*IpPrefix::Parse(v4 ? "224.0.0.0/4" : "ff00::/8")};
    bool used = false;
    for (const IpPrefix& cidr : own_pods) {
      if (cidr.is_v4() != v4) continue;
      used = true;
      stay.push_back(cidr);
      nft::Rule rule = InFamily("postrouting", v4);
      Match(rule, v4 ? nft::Field::kIpSaddr : nft::Field::kIp6Saddr, cidr).Finish(nft::Jump(name));
      postrouting.rules.push_back(std::move(rule));
    }
    if (!used) continue;
    auto& leaving = out.chains[name];
    leaving.chain = {name, {}};
    for (const IpPrefix& cidr : inside) {
      if (cidr.is_v4() == v4) stay.push_back(cidr);
    }
    for (const IpPrefix& cidr : Aggregate(stay)) {
      nft::Rule rule(name);
      Match(rule, v4 ? nft::Field::kIpDaddr : nft::Field::kIp6Daddr, cidr)
          .Finish({nft::Verdict::Kind::kAccept});
      leaving.rules.push_back(std::move(rule));
    }
    nft::Rule masquerade(name);
    masquerade.Masquerade();
    leaving.rules.push_back(std::move(masquerade));
  }
  return out;
}

Result<bool> EnsureMasquerade(nft::Kernel& kernel, const nft::Ruleset& wanted) {
  KEELSON_ASSIGN_OR_RETURN(std::optional<nft::Ruleset> found, kernel.Read(wanted.table));
  nft::Transaction transaction = nft::Diff(found, wanted);
  if (transaction.empty()) return false;
  KEELSON_RETURN_IF_ERROR(kernel.Apply(transaction));
  return true;
}

Result<> RemoveMasquerade(nft::Kernel& kernel) {
  nft::Transaction transaction(Table());
  transaction.DeleteTable();
  Result<> removed = kernel.Apply(transaction);
  if (!removed && !removed.error().Is(Code::kNotFound)) return removed.error();
  return {};
}

}  // namespace keelson::cni::agent

#include "ctl/trace/domain_names.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lib/dataplane/domain_sets.h"
#include "lib/dataplane/policy_sets.h"

namespace keelson::ctl {
namespace {

// The sets of names, by pattern; both families are one.
std::vector<KnownDomain> Collect(const std::vector<nft::LiveTable>& tables,
                                 const std::set<std::string>* only) {
  std::map<std::string, std::set<IpAddress>> found;
  const nft::Table wanted = dataplane::PolicyTable();
  for (const nft::LiveTable& table : tables) {
    if (table.contents.table.family != wanted.family || table.contents.table.name != wanted.name) continue;
    for (const auto& [name, contents] : table.contents.sets) {
      if (only && !only->contains(name)) continue;
      std::optional<std::string> pattern = dataplane::PatternOf(name, true);
      if (!pattern) pattern = dataplane::PatternOf(name, false);
      if (!pattern) continue;
      std::set<IpAddress>& addresses = found[*pattern];
      for (const auto& [key, element] : contents.elements) addresses.insert(IpAddress::FromBytes(key));
    }
  }
  std::vector<KnownDomain> out;
  for (const auto& [pattern, addresses] : found) {
    out.push_back({pattern, {addresses.begin(), addresses.end()}});
  }
  return out;
}

}  // namespace

std::vector<KnownDomain> AllDomains(const std::vector<nft::LiveTable>& tables) {
  return Collect(tables, nullptr);
}

std::vector<KnownDomain> DomainsOf(const std::vector<nft::LiveTable>& tables, const std::string& name) {
  std::set<std::string> sets;
  for (bool v4 : {true, false}) {
    for (std::string& set : dataplane::DomainSetsOf(name, v4)) sets.insert(std::move(set));
  }
  return Collect(tables, &sets);
}

std::vector<std::string> NotesOfName(const std::string& name, const std::vector<KnownDomain>& found) {
  if (found.empty()) {
    return {"no network policy on this node has the domain name " + name + ": give an address"};
  }
  std::vector<std::string> out;
  for (const KnownDomain& domain : found) {
    if (domain.addresses.empty()) {
      out.push_back(domain.pattern +
                    " has no address yet: a pod of this node has to ask the cluster's DNS first");
    } else if (domain.pattern != name) {
      out.push_back(domain.pattern +
                    " has the addresses of all names below it that pods of this node have asked for");
    }
  }
  return out;
}

std::vector<std::string> NotesOfAddress(const IpAddress& address, const std::vector<KnownDomain>& all) {
  if (all.empty()) return {};
  std::string patterns;
  for (const KnownDomain& domain : all) {
    if (!std::binary_search(domain.addresses.begin(), domain.addresses.end(), address)) continue;
    patterns += (patterns.empty() ? "" : ", ") + domain.pattern;
  }
  if (patterns.empty()) {
    return {"the cluster's DNS has lately given " + address.ToString() +
            " for none of the domain names that network policies on this node have"};
  }
  return {"the cluster's DNS has given " + address.ToString() + " for " + patterns};
}

}  // namespace keelson::ctl

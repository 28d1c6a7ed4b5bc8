// Destinations of `nodectl why connection` outside of the cluster, and what network policies by domain name know of them:
// the sets that the cluster's DNS fills (lib/dataplane/domain_sets.h). Pure.
#pragma once

#include <string>
#include <vector>

#include "lib/base/ip.h"
#include "lib/nft/trace.h"

namespace keelson::ctl {

struct KnownDomain {
  std::string pattern;               // "www.example.com", "*.example.com"
  std::vector<IpAddress> addresses;  // that answers have given for such names and that still count; sorted
};

// Which names of network policies on this node match `name`. `name`: in lower case, without a dot at its end.
std::vector<KnownDomain> DomainsOf(const std::vector<nft::LiveTable>& tables, const std::string& name);
// All names that network policies on this node have.
std::vector<KnownDomain> AllDomains(const std::vector<nft::LiveTable>& tables);

// Sentences for people.
std::vector<std::string> NotesOfName(const std::string& name, const std::vector<KnownDomain>& found);
std::vector<std::string> NotesOfAddress(const IpAddress& address, const std::vector<KnownDomain>& all);

}  // namespace keelson::ctl

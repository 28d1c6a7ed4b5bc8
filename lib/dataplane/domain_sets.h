// Addresses of domain names in the table `inet keelson-policy` (policy_sets.h): the channel between the cluster's DNS in
// kube-proxy and kube-cni.
//
//   set domain4-www.example.com   { ipv4_addr; flags dynamic, timeout }     the name alone
//   set subdomains4-example.com   { ipv4_addr; flags dynamic, timeout }     "*.example.com": one label more, or several
//
// kube-cni makes a set for each name that a policy has under `domainNames`, and rules that look into it. The DNS finds the
// sets by their names, and adds the addresses of an answer, for the time that the answer holds, before it gives the
// answer to a pod. Nothing else adds elements, so a name without answers opens nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/nft/model.h"

namespace keelson::dataplane {

// An entry of `domainNames` (kubernetes-sigs/network-policy-api, DomainName) in lower case and without a dot at its end:
// "www.example.com", "*.example.com". Nullopt: not of that form, or longer than the name of a set has room for.
std::optional<std::string> DomainPattern(std::string_view text);

// `pattern`: of DomainPattern().
nft::Set DomainAddresses(std::string_view pattern, bool v4);
// The pattern of a set of this kind; nullopt for other sets.
std::optional<std::string> PatternOf(std::string_view set_name, bool v4);

// The names of all sets that an address of `name` may belong to. `name`: in lower case, without a dot at its end; bytes
// of labels that are no part of a host name are escaped.
std::vector<std::string> DomainSetsOf(std::string_view name, bool v4);

}  // namespace keelson::dataplane

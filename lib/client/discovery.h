// Discovery at run time: the resources that a server serves in named groups, custom resources and those of aggregated
// API servers included. The core group is not asked for: it has built-in kinds only.
#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/client/rest.h"

namespace keelson::client {

// Immutable. Rows are those of the static table where it has them. Other rows are made for the discovery and live as
// long as the process; their objects are PartialObjectMetadata, for MetadataClient. Equal resources give the same row.
struct DiscoveredResources {
  // Main resources. Groups stand in the server's order, versions of a group by the server's preference.
  std::vector<const api::ResourceInfo*> resources;
  // Why a group's version is missing, by "GROUP/VERSION": its server does not answer.
  std::map<std::string, std::string> failures;

  // Null when the server does not serve the kind in that version.
  const api::ResourceInfo* FindKind(std::string_view group, std::string_view version,
                                    std::string_view kind) const;
  // Each resource that the static table does not have, once, in the first version that has all of `verbs`.
  std::vector<const api::ResourceInfo*> Unknown(const std::vector<std::string_view>& verbs) const;
  bool HasFailed(std::string_view group) const;
  // client-go's words for `failures`: "unable to retrieve the complete list of server APIs: GROUP/VERSION: WHY, ...".
  std::string FailureMessage() const;
};

// Asks for aggregated discovery (apidiscovery.k8s.io/v2), and servers without it group by group. An error means that
// nothing is known; groups that fail alone are in `failures`.
Result<DiscoveredResources> Discover(const RestClient& api, std::stop_token stop);

}  // namespace keelson::client

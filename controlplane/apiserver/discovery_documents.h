// The documents of discovery, for one state of the served resources.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controlplane/apiserver/aggregator/extension_documents.h"
#include "controlplane/apiserver/aggregator/priorities.h"
#include "controlplane/apiserver/request/api_enablement.h"
#include "lib/api/proto/apidiscovery_v2.pb.h"
#include "lib/api/types.h"

namespace keelson::apiserver {

// A served resource or subresource. Those of a resource follow it.
struct ServedResource {
  const api::ResourceInfo* row;
  std::string singular;
  std::vector<std::string> verbs, short_names, categories;
};

// What APIServices say, and peers.
struct DiscoveryMerge {
  using GroupVersion = std::pair<std::string, std::string>;
  std::map<GroupVersion, ApiServicePriority> priorities;  // others have those of priorities.h
  // The group versions of extension API servers, and of peers alone, which this server does not answer for.
  std::map<GroupVersion, std::shared_ptr<const discoveryapi::APIVersionDiscovery>> remote;
  // Resources that only peers have in group versions of this server.
  std::map<GroupVersion, std::vector<discoveryapi::APIResourceDiscovery>> further;
};

struct DiscoveryDocuments {
  struct Document {
    std::unique_ptr<api::Message> message;
    api::GroupVersionKind gvk;
  };
  struct Aggregated {
    std::unique_ptr<api::apidiscovery::v2::APIGroupDiscoveryList> message;
    std::string etag;  // of the contents, independent of the encoding
  };
  std::map<std::string, Document, std::less<>> by_path;  // without a slash at the end
  Aggregated core, groups;

  // `server_address`: host:port for clients. Groups and versions stand in the order of their priorities.
  DiscoveryDocuments(const std::string& server_address, const std::vector<ServedResource>& resources,
                     const DiscoveryMerge& merge = {});
};

// The resources of the static table.
std::vector<ServedResource> BuiltInResources(const ApiEnablement& enablement);

}  // namespace keelson::apiserver

// What extension API servers say of themselves: the resources of their group versions, and where their OpenAPI
// documents are. Kept for the merged documents of this server, so that no request for these waits for an extension
// server.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "controlplane/apiserver/aggregator/api_services.h"
#include "controlplane/apiserver/aggregator/extension_clients.h"
#include "lib/api/proto/apidiscovery_v2.pb.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

namespace discoveryapi = api::apidiscovery::v2;

// Of one APIService.
struct ExtensionDocument {
  bool fresh = false;  // false: the last attempt to read it failed; `discovery` is an earlier one, or empty
  // With freshness as above.
  std::shared_ptr<const discoveryapi::APIVersionDiscovery> discovery;
  // Of the OpenAPI document: apis/G/V, and /openapi/v3/apis/G/V?hash=H. Empty: there is none.
  std::string openapi_path, openapi_url;
  // The part of its OpenAPI document of version 2 that is about the group version (lib/api/openapi/extension.h). Null:
  // there is none. Another object whenever the contents are.
  std::shared_ptr<const std::string> openapi_v2;
};

// A body of discovery: an APIGroupDiscoveryList, of which the entry's group version counts; an empty one when it has
// none.
Result<discoveryapi::APIVersionDiscovery> FromAggregated(std::string_view json,
                                                         const ApiServiceEntry& service);
// An APIResourceList.
Result<discoveryapi::APIVersionDiscovery> FromResourceList(std::string_view json,
                                                           const ApiServiceEntry& service);
// The entry of the group version in an index of OpenAPI 3; empty: it has none.
std::string OpenApiUrlOf(std::string_view index, const ApiServiceEntry& service);

class ExtensionDocuments {  // thread safe
 public:
  // Both must outlive this.
  ExtensionDocuments(ExtensionClients& clients, Clock& clock) : clients_(clients), clock_(clock) {}

  // Reads the documents of an APIService, unless the present ones are younger than a minute. Blocks up to 15 seconds.
  void Refresh(const ApiServiceEntry& service, std::stop_token stop);
  // The server cannot be asked at present.
  void MarkStale(const ApiServiceEntry& service);
  void Remove(const std::string& name);

  // By APIService. A group version without an entry has not been asked for yet.
  std::map<std::string, ExtensionDocument> All() const;
  // Entries of the index of OpenAPI 3: the documents of servers that answer, as members of a JSON object.
  std::string OpenApiEntries() const;
  // Changes whenever All() does.
  uint64_t generation() const;

 private:
  struct Kept {
    ExtensionDocument document;
    std::string target;  // where it comes from
    SteadyTime read;
    std::string openapi_v2_etag;
  };
  Result<discoveryapi::APIVersionDiscovery> ReadDiscovery(const ApiServiceEntry& service,
                                                          std::stop_token stop);
  // `etag`: of what is known; a server that has nothing else may answer 304.
  Result<http::ClientResponse> Get(const ApiServiceEntry& service, const std::string& path,
                                   const std::string& accept, std::stop_token stop,
                                   const std::string& etag = "");
  // Fills in the part of the document of version 2; returns its ETag.
  std::string ReadOpenApiV2(const ApiServiceEntry& service, std::stop_token stop,
                            ExtensionDocument& document);
  void Put(const ApiServiceEntry& service, ExtensionDocument document, std::string etag = "")
      KEELSON_REQUIRES(mutex_);

  ExtensionClients& clients_;
  Clock& clock_;
  mutable Mutex mutex_;
  std::map<std::string, Kept> kept_ KEELSON_GUARDED_BY(mutex_);
  uint64_t generation_ KEELSON_GUARDED_BY(mutex_) = 0;
};

}  // namespace keelson::apiserver

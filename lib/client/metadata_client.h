// The metadata of objects of any kind, as client-go's metadata package: for controllers that treat all kinds alike
// and cannot know them (garbage collector, namespaces). Rows are built in or discovered (discovery.h).
//
// Errors are those of RestClient. Thread safe; copies share the transport.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/api/types.h"
#include "lib/client/rest.h"

namespace keelson::client {

class MetadataClient {
 public:
  explicit MetadataClient(RestClient api) : api_(std::move(api)) {}
  // A copy whose calls end with kCancelled when `stop` is requested.
  MetadataClient With(std::stop_token stop) const;

  Result<metav1::ObjectMeta> Get(const api::ResourceInfo& info, std::string_view ns,
                                 std::string_view name) const;
  Result<std::vector<metav1::ObjectMeta>> List(const api::ResourceInfo& info, std::string_view ns) const;
  // Discovered rows have no strategic merge patches: servers answer with kUnsupportedMediaType. Returns the stored
  // metadata.
  Result<metav1::ObjectMeta> Patch(const api::ResourceInfo& info, std::string_view ns, std::string_view name,
                                   PatchType type, std::string body) const;
  Result<> Delete(const api::ResourceInfo& info, std::string_view ns, std::string_view name,
                  const DeleteOptions& options) const;
  // Watches all namespaces, with bookmarks. The stream carries frames (watch.h) of PartialObjectMetadata.
  Result<std::unique_ptr<ApiStream>> Watch(const api::ResourceInfo& info,
                                           std::string_view resource_version) const;

 private:
  RestClient api_;
  std::stop_token stop_;
};

}  // namespace keelson::client

// Informers of custom resources with whole objects (custom_client.h). They are apart from InformerFactory's, since nothing
// tells when a resource's definition comes: only what needs the resource waits for it.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/client/custom/custom_client.h"
#include "lib/client/informer.h"

namespace keelson::client {

class CustomInformers {
 public:
  explicit CustomInformers(RestClient api, Clock& clock = Clock::Real());
  // Before Run(). One informer a row and selection, shared by all users; the row has to outlive it.
  Informer<CustomObject>& Get(const api::ResourceInfo& row, const ListOptions& selection = {});
  // Runs every informer in its own thread until `stop`; calls `ready` once all have synced, which takes until the server
  // serves all resources.
  Result<> Run(std::stop_token stop, const std::function<void()>& ready);

 private:
  struct One {
    const api::ResourceInfo* row;
    std::string labels, fields;
    std::unique_ptr<Informer<CustomObject>> informer;
  };
  const RestClient api_;
  Clock& clock_;
  std::vector<One> informers_;
};

}  // namespace keelson::client

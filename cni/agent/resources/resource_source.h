// Objects of one resource from the API server, as bytes. Not lib/client's RestClient and informers, which link
// every API type: this agent needs none, and their descriptors would take a third of its memory.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "lib/client/rest.h"
#include "lib/client/transport.h"

namespace keelson::cni::agent {

class ResourceSource {  // thread safe
 public:
  // `path`: of the collection, "/api/v1/pods".
  ResourceSource(std::shared_ptr<client::Transport> transport, std::string path)
      : path_(std::move(path)), transport_(std::move(transport)) {}

  const std::string& path() const { return path_; }
  // Calls `each` with every object, page by page; returns the list's resource version.
  Result<std::string> List(const std::function<Result<>(std::string_view raw)>& each,
                           std::stop_token stop) const;
  // Watches from a resource version on, with bookmarks.
  Result<std::unique_ptr<client::WatchStream>> Watch(const std::string& resource_version,
                                                     std::stop_token stop) const;

 protected:
  Result<std::string> Exchange(const client::ApiRequest& request, std::stop_token stop) const;
  std::string path_;

 private:
  std::shared_ptr<client::Transport> transport_;
};

}  // namespace keelson::cni::agent

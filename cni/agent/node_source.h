// Nodes from the API server, as bytes. Not lib/client's RestClient and informers, which link every API
// type: this agent needs none, and their descriptors would take a third of its memory.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "lib/client/rest.h"
#include "lib/client/transport.h"

namespace keelson::cni::agent {

class NodeSource {  // thread safe
 public:
  explicit NodeSource(std::shared_ptr<client::Transport> transport) : transport_(std::move(transport)) {}

  // Calls `each` with every Node, page by page; returns the list's resource version.
  Result<std::string> List(const std::function<Result<>(std::string_view raw)>& each,
                           std::stop_token stop) const;
  // Watches from a resource version on, with bookmarks.
  Result<std::unique_ptr<client::WatchStream>> Watch(const std::string& resource_version,
                                                     std::stop_token stop) const;
  // Sets one annotation.
  Result<> Annotate(const std::string& node, const std::string& key, const std::string& value) const;

 private:
  Result<std::string> Exchange(const client::ApiRequest& request, std::stop_token stop) const;
  std::shared_ptr<client::Transport> transport_;
};

}  // namespace keelson::cni::agent

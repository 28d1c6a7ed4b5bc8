// Nodes from the API server.
#pragma once

#include "cni/agent/resources/resource_source.h"

namespace keelson::cni::agent {

class NodeSource : public ResourceSource {  // thread safe
 public:
  explicit NodeSource(std::shared_ptr<client::Transport> transport)
      : ResourceSource(std::move(transport), "/api/v1/nodes") {}
  // Sets one annotation.
  Result<> Annotate(const std::string& node, const std::string& key, const std::string& value) const;
};

}  // namespace keelson::cni::agent

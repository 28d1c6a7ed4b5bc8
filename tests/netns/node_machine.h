// For tests: what a node has beside its network namespace, where every place is in one process: a cgroup that
// this process is in while it asks as somebody on the node, and a BPF file system.
#pragma once

#include <memory>
#include <string>

#include "lib/base/error.h"
#include "tests/netns/service_plane.h"

namespace keelson::netns {

class NodeMachine {
 public:
  static Result<std::unique_ptr<NodeMachine>> Make();
  ~NodeMachine();
  NodeMachine(const NodeMachine&) = delete;
  NodeMachine& operator=(const NodeMachine&) = delete;

  const NodePlaces& places() const { return places_; }
  // From here on sockets are made by processes of the node, or by others.
  Result<> Enter(bool node);

 private:
  NodeMachine() = default;
  NodePlaces places_;
  std::string outside_;  // the cgroup that this process was in
  bool inside_ = false;
};

}  // namespace keelson::netns

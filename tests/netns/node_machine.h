// For tests: a cgroup and a BPF file system for a node, when all network namespaces are in one process. This
// process joins the cgroup while it acts as a process of the node.
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
  // Subsequent sockets belong to a process on the node (true), or to another one.
  Result<> Enter(bool node);

 private:
  NodeMachine() = default;
  NodePlaces places_;
  std::string outside_;  // the original cgroup of this process
  bool inside_ = false;
};

}  // namespace keelson::netns

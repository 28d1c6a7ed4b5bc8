// The nodes with their labels and the topology keys that a driver has registered on them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "csi/controller/common/controller.h"

namespace keelson::csi::controller {

class TopologyNodes {  // thread safe
 public:
  // Before the informers run. `only`: this node alone; empty: all nodes.
  TopologyNodes(client::InformerFactory& informers, std::string driver, const std::string& only);
  // Before the informers run: called when a topology may have changed. Must not block.
  void OnChange(const std::function<void()>& changed);
  std::vector<TopologyNode> All() const;
  TopologyNode Get(const std::string& name) const;  // without labels and keys when it is not known

 private:
  const std::string driver_;
  std::optional<Segments> Labels(const std::string& name) const;

  client::Informer<metav1::PartialObjectMetadata>* const all_;  // all nodes, or
  client::Informer<corev1::Node>* const one_;                   // the one
  client::Informer<storagev1::CSINode>& registrations_;
};

}  // namespace keelson::csi::controller

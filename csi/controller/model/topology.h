// From where a new volume has to be reached (accessibility_requirements of CreateVolume), and from where a volume can be
// reached (node affinity). external-provisioner's rules. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "csi/controller/model/wire.h"
#include "lib/base/error.h"

namespace keelson::csi::controller {

using Segments = std::map<std::string, std::string>;  // one topology: labels of a node

struct TopologyOptions {
  bool strict = false;    // --strict-topology: the selected node's topology alone
  bool immediate = true;  // --immediate-topology: name all topologies where no node is selected
};

struct TopologyNode {
  std::string name;
  Segments labels;
  std::vector<std::string>
      keys;  // topologyKeys of the driver in the node's CSINode; empty: not registered there
};

// `nodes`: all nodes, in any order; with strict topology and a selected node, that one is enough. nullopt: no
// requirement. kUnavailable, in external-provisioner's words: what is missing may yet come (a node that registers, a
// label); kInvalid: the selected node is not allowed by the class.
Result<std::optional<v1::TopologyRequirement>> RequireTopology(
    const std::string& claim_name,
    const google::protobuf::RepeatedPtrField<corev1::TopologySelectorTerm>& allowed,
    const std::string& selected_node, const std::vector<TopologyNode>& nodes, const TopologyOptions& options);

// Each topology is one term of the selector; nullopt: the volume can be reached from everywhere.
std::optional<corev1::VolumeNodeAffinity> NodeAffinity(
    const google::protobuf::RepeatedPtrField<v1::Topology>& accessible);

// Whether a volume with this affinity can be reached from a node with this topology, as the driver on the node tells
// it. False for a volume without affinity: such a volume belongs to no node.
bool IsReachable(const corev1::PersistentVolume& volume, const Segments& topology);

// Where the search for a place begins, so that the volumes of a StatefulSet spread: FNV-1 of the set's name and the
// pod's number.
uint32_t SpreadingOffset(const std::string& claim_name);

}  // namespace keelson::csi::controller

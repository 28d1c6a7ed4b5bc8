// What a registered driver changes in the CSINode and Node objects of its node. Pure.
#pragma once

#include <optional>
#include <string>

#include "kubelet/volume/csi/node_client.h"
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/api/types.h"

namespace keelson::kubelet::csi {

using CsiNode = api::storage::v1::CSINode;

// Without drivers, owned by the Node, with the annotation of migrated plugins.
CsiNode NewCsiNode(const corev1::Node& node);
// Sets the annotation storage.alpha.kubernetes.io/migrated-plugins to the volume plugins that Kubernetes 1.36 has
// replaced by drivers. False: it is so already.
bool SetMigratedPlugins(CsiNode& object);
// Adds the driver's entry, or replaces it. False: it is so already.
bool InstallDriver(CsiNode& object, const std::string& driver, const NodeInfo& info);
bool UninstallDriver(CsiNode& object, const std::string& driver);

// Strategic merge patches of the Node: labels of the topology, and the entry of the driver in the annotation
// csi.volume.kubernetes.io/nodeid. nullopt: nothing to change. kInvalid, in upstream's words: the annotation cannot be
// read, or a label has another value.
Result<std::optional<std::string>> InstallPatch(const corev1::Node& node, const std::string& driver,
                                                const NodeInfo& info);
// Labels stay, since other drivers may need them.
Result<std::optional<std::string>> UninstallPatch(const corev1::Node& node, const std::string& driver);

}  // namespace keelson::kubelet::csi

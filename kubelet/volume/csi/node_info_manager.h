// Keeps the CSINode and Node objects of this node as its drivers say.
#pragma once

#include <stop_token>
#include <string>

#include "kubelet/volume/csi/csi_node.h"
#include "lib/base/mutex.h"
#include "lib/client/rest.h"

namespace keelson::kubelet::csi {

class NodeInfoManager {  // thread safe: one change at a time
 public:
  NodeInfoManager(client::RestClient api, std::string node) : api_(std::move(api)), node_(std::move(node)) {}

  // Makes the CSINode if there is none, and sets its annotation. Schedulers count on it before pods come.
  Result<> Initialize(std::stop_token stop);
  // Records what the driver says of the node. kInvalid: the driver does not say how it calls the node, or a label of the
  // node has another value.
  Result<> Install(const std::string& driver, const NodeInfo& info, std::stop_token stop);
  // Changes the CSINode only: the number of volumes may change at any time.
  Result<> Update(const std::string& driver, const NodeInfo& info, std::stop_token stop);
  Result<> Uninstall(const std::string& driver, std::stop_token stop);

 private:
  using Change = std::function<bool(CsiNode&)>;  // false: nothing to do
  // Makes the CSINode if there is none.
  Result<> ChangeCsiNode(const client::RestClient& api, const Change& change) KEELSON_REQUIRES(mutex_);
  using Plan = std::function<Result<std::optional<std::string>>(const corev1::Node& node)>;
  Result<> PatchNode(const client::RestClient& api, const Plan& plan) KEELSON_REQUIRES(mutex_);

  const client::RestClient api_;
  const std::string node_;
  Mutex mutex_;
};

}  // namespace keelson::kubelet::csi

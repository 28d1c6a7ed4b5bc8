// The Node object: made once, its status kept true, its Lease renewed.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/cri/runtime.h"
#include "kubelet/node/machine.h"
#include "lib/client/rest.h"

namespace keelson::kubelet {

struct NodeOptions {
  std::string name;
  std::vector<std::string> ips;
  std::string hostname;  // of the label and the Hostname address
  std::map<std::string, std::string> labels;
  std::vector<corev1::Taint> taints;
  std::string provider_id;
  std::string root_dir, kubelet_version = "v1.36.2", runtime_version;
  uint16_t port = 10250;
  Reservations reservations;
  bool register_node = true;
  std::chrono::milliseconds update_frequency{std::chrono::seconds(10)};
  std::chrono::milliseconds report_frequency{std::chrono::minutes(5)};
  int lease_seconds = 40;
  int max_images = 50;  // that are told; negative: all
};

// What the node's conditions and images are made from, asked anew each time.
struct NodeFacts {
  bool memory_pressure = false, disk_pressure = false, pid_pressure = false;
  Result<cri::RuntimeStatus> runtime = cri::RuntimeStatus();
  std::string runtime_version;
  std::vector<cri::Image> images;
  std::optional<std::string> unhealthy;  // why the kubelet is not
  bool shutting_down = false;
  struct Extended {
    int64_t capacity = 0, allocatable = 0;
  };
  std::map<std::string, Extended> extended;  // of device plugins; what others say of other resources stays
};

// Sets what is ours in `node` (labels, annotation, status) and leaves the rest. Pure.
void FillNodeStatus(const NodeOptions& options, const Machine& machine, const NodeFacts& facts, WallTime now,
                    corev1::NodeStatus& status);
corev1::Node NewNode(const NodeOptions& options);
// As StatusPatch of pods; nullopt when nothing but heartbeat times differs.
std::optional<std::string> NodeStatusPatch(const corev1::NodeStatus& base, const corev1::NodeStatus& desired,
                                           bool heartbeats_too);

class NodeManager {
 public:
  using FactsFunction = std::function<NodeFacts(std::stop_token stop)>;
  NodeManager(client::RestClient api, NodeOptions options, FactsFunction facts, Clock& clock = Clock::Real());

  // Registers, then keeps the status true until `stop`; `ready` after the first status was written.
  Result<> RunStatus(std::stop_token stop, const std::function<void()>& ready);
  Result<> RunLease(std::stop_token stop);
  void UpdateNow();  // something has changed that cannot wait for the next round
  const Machine& machine() const { return machine_; }

 private:
  Result<> Register(std::stop_token stop);
  Result<> UpdateStatus(std::stop_token stop);
  // False when the node is not ready within the limit.
  bool AwaitReadiness(std::chrono::milliseconds limit, std::stop_token stop);
  // Until the next round is due, or asked for.
  void AwaitRound(std::chrono::milliseconds limit, std::stop_token stop);
  Result<> RenewLease(std::stop_token stop);

  client::RestClient api_;
  const NodeOptions options_;
  const FactsFunction facts_;
  Clock& clock_;
  const Machine machine_;
  std::optional<SteadyTime> reported_;          // of the status thread
  std::optional<coordinationv1::Lease> lease_;  // of the lease thread
  Mutex mutex_;
  CondVar wake_;
  bool asked_ GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::kubelet

// How PodSyncTask makes what has to exist before the first container: directories, cgroup, volumes, sandbox.
#include <algorithm>

#include "kubelet/container/sandbox_config.h"
#include "kubelet/pod/container_metrics.h"
#include "kubelet/pod/pod_sync_task.h"
#include "lib/base/file.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/pods/resource_claims.h"

namespace keelson::kubelet {

namespace {

constexpr std::chrono::milliseconds kRetry(2000);
constexpr char kLimitExceeded[] = "VolumeAttachmentLimitExceeded",
               kLimitExceededMessage[] = "Node has reached its volume attachment limit, rejecting pod";

DnsConfig HostDns(const NodeContext& node) {
  if (node.resolv_conf.empty()) return {};
  auto text = ReadFile(node.resolv_conf);
  return text ? ParseResolvConf(*text) : DnsConfig();
}

// Whether the pod's status already has its addresses.
bool HasAddresses(const corev1::Pod& pod, const NodeContext& node, const std::vector<std::string>& ips) {
  const auto same = [](const auto& shown, const std::vector<std::string>& are) {
    return std::equal(shown.begin(), shown.end(), are.begin(), are.end(),
                      [](const auto& item, const std::string& ip) { return item.ip() == ip; });
  };
  return same(pod.status().host_ips(), node.node_ips) &&
         same(pod.status().pod_ips(), pod.spec().host_network() ? node.node_ips : ips);
}

}  // namespace

corev1::Pod PodWithAddresses(const corev1::Pod& pod, const NodeContext& node, std::vector<std::string> ips) {
  corev1::Pod out = pod;
  auto& status = *out.mutable_status();
  if (!node.node_ips.empty()) status.set_host_ip(node.node_ips.front());
  status.clear_host_ips();
  for (const std::string& ip : node.node_ips) status.add_host_ips()->set_ip(ip);
  if (pod.spec().host_network()) ips = node.node_ips;
  if (!ips.empty()) status.set_pod_ip(ips.front());
  status.clear_pod_ips();
  for (const std::string& ip : ips) status.add_pod_ips()->set_ip(ip);
  return out;
}

void PodSyncTask::MountVolumes(const std::vector<std::string>& pod_ips) {
  volumes_ = HasAddresses(*pod_, node_, pod_ips)
                 ? deps_.volumes.Mount(*pod_, node_, stop_)
                 : deps_.volumes.Mount(PodWithAddresses(*pod_, node_, pod_ips), node_, stop_);
}

void PodSyncTask::RefreshVolumes() {
  if (pod_->spec().volumes().empty()) return;
  MountVolumes(state_.runtime->Ips());
  ReportMountError();
  if (deps_.volumes.RetriesExpansion(pod_->metadata().uid())) RequeueAfter(kRetry);
}

void PodSyncTask::ReportMountError() {
  if (volumes_) {
    state_.reported_mount_error.clear();
    return;
  }
  if (volumes_.error().Is(Code::kCancelled)) return;
  if (deps_.volumes.ExceedsAttachLimit(pod_->metadata().uid()) && !state_.runtime->AnyRunning()) {
    state_.termination_reason = TerminationReason{kLimitExceeded, kLimitExceededMessage, ""};
    CountRejectedPod(kLimitExceeded);
    Event("", "Warning", kLimitExceeded, kLimitExceededMessage);
    RequeueAfter(std::chrono::milliseconds(1));
    return;
  }
  if (state_.reported_mount_error != volumes_.error().message()) {
    Event("", "Warning", "FailedMount", volumes_.error().message());
  }
  state_.reported_mount_error = volumes_.error().message();
  RequeueAfter(kRetry);
}

Result<> PodSyncTask::EnsureSandboxAndVolumes(const PodActions& actions, std::string& sandbox_id) {
  KEELSON_RETURN_IF_ERROR(PrepareDynamicResources());
  const metav1::ObjectMeta& meta = pod_->metadata();
  KEELSON_RETURN_IF_ERROR(MakeDirs(node_.paths.Pod(meta.uid()), 0750));
  KEELSON_RETURN_IF_ERROR(MakeDirs(node_.paths.PodLogs(meta.namespace_(), meta.name(), meta.uid())));
  if (auto made = deps_.cgroups.Ensure(*pod_, node_); !made) {
    Event("", "Warning", "FailedCreatePodContainer",
          "unable to ensure pod container exists: failed to create container: " + made.error().message());
    return made;
  }
  uint32_t attempt = actions.create_sandbox              ? actions.sandbox_attempt
                     : state_.runtime->sandboxes.empty() ? 0
                                                         : state_.runtime->sandboxes.front().metadata.attempt;
  if (auto known = GenerateSandboxConfig(actions.create_sandbox, attempt); !known) {
    Event("", "Warning", "FailedCreatePodSandBox",
          "Failed to create pod sandbox: " + known.error().message());
    RequeueAfter(kRetry);
    return known;
  }
  if (!actions.create_sandbox) {
    MountVolumes(state_.runtime->Ips());
    ReportMountError();
    return {};
  }
  Result<> created;
  std::vector<std::function<void()>> tasks = {[&] { created = CreatePodSandbox(sandbox_id); }};
  if (!pod_->spec().volumes().empty()) tasks.push_back([this] { MountVolumes({}); });
  deps_.executor.RunAll(std::move(tasks));
  ReportMountError();
  return created;
}

// Each start of a container asks, not only the first: an older kubelet, which did not know claims, may have made the
// sandbox.
Result<> PodSyncTask::PrepareDynamicResources() {
  if (!k8s::HasResourceClaims(*pod_)) return {};
  Result<> prepared = deps_.prepare_dynamic_resources(*pod_, stop_);
  if (!prepared && !prepared.error().Is(Code::kCancelled)) {
    Event("", "Warning", "FailedPrepareDynamicResources",
          "Failed to prepare dynamic resources: " + prepared.error().message());
  }
  return prepared;
}

// New containers of an existing sandbox need its configuration too.
Result<> PodSyncTask::GenerateSandboxConfig(bool fresh, uint32_t attempt) {
  KEELSON_ASSIGN_OR_RETURN(state_.runtime_handler, deps_.runtime_handler(pod_->spec().runtime_class_name()));
  DnsConfig host_dns = HostDns(node_);
  KEELSON_ASSIGN_OR_RETURN(sandbox_config_,
                           BuildSandboxConfig(*pod_, node_, host_dns, deps_.cgroups.Parent(*pod_), attempt));
  KEELSON_ASSIGN_OR_RETURN(sandbox_config_.namespaces.user_ids, deps_.user_namespaces.Get(*pod_));
  if (sandbox_config_.namespaces.user_ids) {
    const cri::RuntimeHandler* handler = node_.Handler(state_.runtime_handler);
    if (!handler) {
      return Error(Code::kInvalid, "the handler " + k8s::Quote(state_.runtime_handler) + " is not known");
    }
    if (!handler->user_namespaces) {
      return Error(Code::kInvalid, state_.runtime_handler.empty()
                                       ? "default runtime handler does not support user namespaces"
                                       : "RuntimeClass handler " + k8s::Quote(state_.runtime_handler) +
                                             " does not support user namespaces");
    }
  }
  if (fresh) {
    for (const auto& [reason, message] : PodDns(*pod_, node_, host_dns).left_out) {
      Event("", "Warning", reason.c_str(), message);
    }
  }
  return {};
}

Result<> PodSyncTask::CreatePodSandbox(std::string& sandbox_id) {
  auto id = [&] {
    ContainerStartLimiter::Slot slot(deps_.start_limiter, ContainerStartLimiter::Kind::kSandbox);
    return deps_.runtime.RunPodSandbox(sandbox_config_, state_.runtime_handler, stop_);
  }();
  if (sandbox_config_.namespaces.user_ids) CountUserNamespaces(id.has_value());
  if (!id) {
    Event("", "Warning", "FailedCreatePodSandBox", "Failed to create pod sandbox: " + id.error().message());
    RequeueAfter(kRetry);
    return id.error();
  }
  // The sandbox's address is for the containers' variables and for the status, which is sent while they start.
  KEELSON_RETURN_IF_ERROR(SetRuntimeStatus(WithSandbox(deps_.runtime, *state_.runtime, *id, stop_)));
  sandbox_id = *id;
  ReportStatus(false);
  return {};
}

}  // namespace keelson::kubelet

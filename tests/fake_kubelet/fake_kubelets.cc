#include "tests/fake_kubelet/fake_kubelets.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/client/backoff.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::fake_kubelet {
namespace {

constexpr char kLeaseNamespace[] = "kube-node-lease";
constexpr int kLeaseSeconds = 40;

// Allocated from 10.0.0.0/8, which is large enough to avoid reuse.
std::string Address(uint32_t number) {
  number %= 0xfffffe;
  ++number;
  return fmt::format("10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255);
}

std::chrono::nanoseconds Left(std::chrono::milliseconds period, WallTime since, WallTime now) {
  return since + period - now;
}

}  // namespace

FakeKubelets::FakeKubelets(client::RestClient api, Options options, Clock& clock)
    : api_(std::move(api)),
      options_(std::move(options)),
      clock_(clock),
      informers_(api_, clock),
      pods_(informers_.Get<corev1::Pod>({.field_selector = "spec.nodeName!="})),
      queue_("fake_pods", clock) {
  for (int i = 0; i < options_.nodes; ++i) {
    names_.push_back(options_.prefix + std::to_string(i));
    own_.insert(names_.back());
  }
  pods_.AddHandler([this](const client::Change<corev1::Pod>& change) {
    if (change.new_object && own_.count(change.new_object->spec().node_name())) queue_.Add(change.key);
  });
}

Result<> FakeKubelets::MakeNode(const client::RestClient& api, const std::string& name) {
  corev1::Node node;
  node.mutable_metadata()->set_name(name);
  auto& labels = *node.mutable_metadata()->mutable_labels();
  for (const auto& [key, value] : options_.labels) labels[key] = value;
  labels["kubernetes.io/hostname"] = name;
  labels["kubernetes.io/os"] = "linux";
  if (!options_.taint.empty()) {
    corev1::Taint& taint = *node.mutable_spec()->add_taints();
    const size_t colon = options_.taint.find(':');
    taint.set_key(options_.taint.substr(0, colon));
    taint.set_effect(colon == std::string::npos ? "NoSchedule" : options_.taint.substr(colon + 1));
  }
  Result<corev1::Node> made = api.Create(node);
  if (!made && !made.error().Is(Code::kAlreadyExists)) return made.error().Wrap("create node");
  KEELSON_RETURN_IF_ERROR(RenewLease(api, name));
  auto set_ready = [&](corev1::Node& stored) -> Result<bool> {
    corev1::NodeStatus& status = *stored.mutable_status();
    for (auto* resources : {status.mutable_capacity(), status.mutable_allocatable()}) {
      (*resources)["cpu"].set_string(options_.cpu);
      (*resources)["memory"].set_string(options_.memory);
      (*resources)["pods"].set_string(options_.pods);
    }
    status.mutable_node_info()->set_kubelet_version("v1.36.0-fake");
    for (const char* type : {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}) {
      corev1::NodeCondition condition;
      condition.set_type(type);
      const bool ready = std::string_view(type) == "Ready";
      condition.set_status(ready ? "True" : "False");
      condition.set_reason(ready ? "KubeletReady" : "KubeletHasNoProblem");
      *condition.mutable_last_heartbeat_time() = api::ToTime(clock_.Now());
      k8s::SetCondition(status, std::move(condition), clock_.Now());
    }
    return true;
  };
  Result<corev1::Node> stored = client::UpdateWithRetry<corev1::Node>(api, "", name, "status", set_ready);
  if (!stored) return stored.error().Wrap("status of node");
  return {};
}

Result<> FakeKubelets::RenewLease(const client::RestClient& api, const std::string& name) {
  auto renew = [&](coordinationv1::Lease& lease) -> Result<bool> {
    lease.mutable_spec()->set_holder_identity(name);
    lease.mutable_spec()->set_lease_duration_seconds(kLeaseSeconds);
    *lease.mutable_spec()->mutable_renew_time() = api::ToMicroTime(clock_.Now());
    return true;
  };
  Result<coordinationv1::Lease> stored =
      client::UpdateWithRetry<coordinationv1::Lease>(api, kLeaseNamespace, name, "", renew);
  if (!stored && stored.error().Is(Code::kNotFound)) {
    coordinationv1::Lease lease;
    lease.mutable_metadata()->set_namespace_(kLeaseNamespace);
    lease.mutable_metadata()->set_name(name);
    (void)renew(lease);
    stored = api.Create(lease);
  }
  if (!stored) return stored.error().Wrap("lease of node");
  return {};
}

void FakeKubelets::RenewLeases(std::stop_token stop) {
  const client::RestClient api = api_.With(stop);
  while (client::SleepFor(clock_, options_.lease_period, stop)) {
    for (const std::string& name : names_) {
      if (IsSilent(name)) continue;
      if (Result<> renewed = RenewLease(api, name); !renewed && !stop.stop_requested()) {
        log::Warn("Lease not renewed", {{"node", name}, {"err", renewed.error()}});
      }
    }
  }
}

void FakeKubelets::Silence(const std::string& node, bool silent) {
  {
    MutexLock lock(mutex_);
    if (silent) {
      silent_.insert(node);
    } else {
      silent_.erase(node);
    }
  }
  if (silent) return;
  for (const auto& pod : pods_.List()) {
    if (pod->spec().node_name() == node) queue_.Add(api::KeyOf(*pod));
  }
}

bool FakeKubelets::IsSilent(const std::string& node) {
  MutexLock lock(mutex_);
  return silent_.count(node) > 0;
}

Result<> FakeKubelets::Run(std::stop_token stop, const std::function<void()>& ready) {
  const client::RestClient api = api_.With(stop);
  std::vector<std::jthread> threads;
  Result<> result = informers_.Run(stop, [&] {
    threads.emplace_back([this, stop] {
      client::RunWorkers(queue_, options_.workers, stop,
                         [this](const std::string& key, std::stop_token s) { return Reconcile(key, s); });
    });
    threads.emplace_back([this, api, stop, ready] {
      for (const std::string& name : names_) {
        while (!stop.stop_requested()) {
          Result<> made = MakeNode(api, name);
          if (made) break;
          log::Warn("Node not made, trying again", {{"node", name}, {"err", made.error()}});
          if (!client::SleepFor(clock_, std::chrono::seconds(1), stop)) return;
        }
      }
      if (stop.stop_requested()) return;
      log::Info("Nodes are ready", {{"count", names_.size()}});
      ready();
      RenewLeases(stop);
    });
  });
  threads.clear();
  return result;
}

Result<> FakeKubelets::Write(const client::RestClient& api, const corev1::Pod& pod,
                             corev1::PodStatus status) {
  corev1::Pod changed = pod;
  *changed.mutable_status() = std::move(status);
  Result<corev1::Pod> stored = api.UpdateStatus(changed);
  if (!stored) return stored.error();
  ++writes_;
  return {};
}

Result<client::Requeue> FakeKubelets::Reconcile(const std::string& key, std::stop_token stop) {
  auto pod = pods_.Get(key);
  if (!pod || !own_.count(pod->spec().node_name()) || IsSilent(pod->spec().node_name())) {
    return client::Requeue{};
  }
  const client::RestClient api = api_.With(stop);
  const metav1::ObjectMeta& meta = pod->metadata();
  const WallTime now = clock_.Now();
  auto gone_is_fine = [](const Result<>& result) -> Result<client::Requeue> {
    // Changed meanwhile: the update event enqueues the pod again.
    if (result || result.error().Is(Code::kNotFound) || result.error().Is(Code::kConflict)) {
      return client::Requeue{};
    }
    return result.error();
  };
  if (k8s::IsTerminating(*pod)) {
    Result<> deleted = api.Delete<corev1::Pod>(meta.namespace_(), meta.name(),
                                               {.grace_period_seconds = 0, .uid = meta.uid()});
    if (deleted) ++writes_;
    return gone_is_fine(deleted);
  }
  if (k8s::IsTerminal(*pod)) return client::Requeue{};
  if (pod->status().phase() != "Running") {
    const auto* bound = k8s::FindCondition(pod->status(), k8s::kPodScheduled);
    const WallTime since = bound ? api::FromTime(bound->last_transition_time()) : now;
    if (auto left = Left(options_.start_time, since, now); left.count() > 0) return client::Requeue{left};
    return gone_is_fine(Write(api, *pod, RunningStatus(*pod, Address(next_address_++), now)));
  }
  if (pod->spec().restart_policy() == "Always" || pod->spec().restart_policy().empty()) {
    return client::Requeue{};
  }
  const WallTime since = api::FromTime(pod->status().start_time());
  if (auto left = Left(options_.job_time, since, now); left.count() > 0) return client::Requeue{left};
  return gone_is_fine(Write(api, *pod, SucceededStatus(*pod, now)));
}

}  // namespace keelson::fake_kubelet

#include "kubelet/node/node_manager.h"

#include <thread>

#include "kubelet/node/registration.h"
#include "lib/api/meta.h"
#include "lib/base/pause.h"

namespace keelson::kubelet {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kFastPeriod(250), kPatience(std::chrono::seconds(10)), kQuickLook(50);
constexpr char kLeaseNamespace[] = "kube-node-lease";

}  // namespace

NodeManager::NodeManager(client::RestClient api, NodeOptions options, FactsFunction facts, Clock& clock,
                         EventFunction event)
    : api_(std::move(api)),
      options_(std::move(options)),
      facts_(std::move(facts)),
      event_(std::move(event)),
      clock_(clock),
      machine_(ReadMachine(options_.root_dir)),
      startup_(clock) {}

Result<> NodeManager::Register(std::stop_token stop) {
  auto api = api_.With(stop);
  startup_.Registering();
  auto created = api.Create(NewNode(options_));
  if (created) {
    startup_.Registered();
    log::Info("Registered node", {{"node", options_.name}});
    return {};
  }
  if (!created.error().Is(Code::kAlreadyExists)) return created.error().Wrap("register node");
  KEELSON_ASSIGN_OR_RETURN(const corev1::Node there, api.Get<corev1::Node>("", options_.name));
  constexpr auto kMerge = client::PatchType::kStrategicMerge;
  if (auto patch = RegistrationPatch(options_, there)) {
    auto patched = api.Patch<corev1::Node>("", options_.name, kMerge, std::move(*patch));
    if (!patched) return patched.error().Wrap("update labels of node");
  }
  if (auto patch = ResetPatch(options_, there)) {
    auto patched = api.Patch<corev1::Node>("", options_.name, kMerge, std::move(*patch), "status");
    if (!patched) return patched.error().Wrap("reset extended resources of node");
  }
  return {};
}

void NodeManager::Tell(const corev1::Node& node, const corev1::NodeStatus& now) {
  if (!event_) return;
  for (const NodeEvent& event : EventsOfChange(options_.name, node.status(), now)) event_(event);
  const bool unschedulable = node.spec().unschedulable();
  if (unschedulable_ && *unschedulable_ != unschedulable) {
    event_(SchedulableEvent(options_.name, unschedulable));
  }
  unschedulable_ = unschedulable;
}

// A runtime that hangs must not keep the node from telling so.
NodeFacts NodeManager::Observe(std::stop_token stop) {
  std::stop_source late;
  std::stop_callback end(stop, [&late] { late.request_stop(); });
  NodeFacts facts;
  {
    std::jthread timer([this, &late](std::stop_token done) {
      // Nearly all calls end before the read of the clock, which counts the waiting threads.
      if (Pause(Clock::Real(), kQuickLook, done) && Pause(clock_, kPatience, done)) late.request_stop();
    });
    facts = facts_(late.get_token());
  }
  if (late.stop_requested() && !facts.runtime && facts.runtime.error().Is(Code::kCancelled)) {
    facts.runtime = Error(Code::kTimeout, "it does not answer");
  }
  return facts;
}

Result<> NodeManager::UpdateStatus(std::stop_token stop) {
  auto api = api_.With(stop);
  NodeFacts facts = Observe(stop);
  if (facts.address_problem && facts.address_problem != address_problem_) {
    log::Error("Failed to set some node status fields", {{"err", *facts.address_problem}});
  }
  address_problem_ = facts.address_problem;
  KEELSON_ASSIGN_OR_RETURN(corev1::Node node, api.Get<corev1::Node>("", options_.name));
  corev1::NodeStatus desired = node.status();
  FillNodeStatus(options_, machine_, facts, clock_.Now(), desired);
  bool due = !reported_ || clock_.SteadyNow() - *reported_ >= options_.report_frequency;
  auto patch = NodeStatusPatch(node.status(), desired, due);
  if (patch) {
    auto stored = api.Patch<corev1::Node>("", options_.name, client::PatchType::kStrategicMerge,
                                          std::move(*patch), "status");
    if (!stored) return stored.error().Wrap("write node status");
    reported_ = clock_.SteadyNow();
  }
  if (NotReady(facts).empty()) startup_.Ready();
  Tell(node, desired);
  return {};
}

Result<> NodeManager::RunStatus(std::stop_token stop, const std::function<void()>& ready) {
  constexpr milliseconds kFirst(200), kMost(7000);
  milliseconds wait = kFirst;
  if (event_) event_({"Normal", "Starting", "Starting kubelet."});
  while (options_.register_node) {
    auto registered = Register(stop);
    if (registered) break;
    if (stop.stop_requested()) return {};
    log::Warn("Cannot register the node", {{"err", registered.error()}});
    if (!Pause(clock_, wait, stop)) return {};
    wait = std::min(wait * 2, kMost);
  }
  bool told = false, was_ready = false;
  while (!stop.stop_requested()) {
    auto updated = UpdateStatus(stop);
    if (!updated && !stop.stop_requested()) {
      log::Warn("Cannot update the node's status", {{"err", updated.error()}});
    }
    if (updated && !told) {
      ready();
      told = true;
    }
    // Pods wait for a starting node: report readiness at once, not in the next round.
    const milliseconds pause = told ? options_.update_frequency : kFastPeriod;
    if (was_ready) {
      AwaitRound(pause, stop);
    } else {
      was_ready = AwaitReadiness(pause, stop);
    }
  }
  return {};
}

void NodeManager::UpdateNow() {
  MutexLock lock(mutex_);
  asked_ = true;
  wake_.notify_all();
}

void NodeManager::AwaitRound(milliseconds limit, std::stop_token stop) {
  std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    wake_.notify_all();
  });
  const SteadyTime end = clock_.SteadyNow() + limit;
  MutexLock lock(mutex_);
  while (!asked_ && !stop.stop_requested() && clock_.SteadyNow() < end) clock_.WaitUntil(mutex_, wake_, end);
  asked_ = false;
}

bool NodeManager::AwaitReadiness(milliseconds limit, std::stop_token stop) {
  const SteadyTime end = clock_.SteadyNow() + limit;
  while (clock_.SteadyNow() < end) {
    if (NotReady(Observe(stop)).empty()) return true;
    if (!Pause(clock_, kFastPeriod, stop)) break;
  }
  return false;
}

Result<> NodeManager::RenewLease(std::stop_token stop) {
  auto api = api_.With(stop);
  if (!lease_) {
    auto found = api.Get<coordinationv1::Lease>(kLeaseNamespace, options_.name);
    if (found) {
      lease_ = std::move(*found);
    } else if (!found.error().Is(Code::kNotFound)) {
      return found.error();
    }
  }
  coordinationv1::Lease wanted = lease_.value_or(coordinationv1::Lease());
  wanted.mutable_metadata()->set_name(options_.name);
  wanted.mutable_metadata()->set_namespace_(kLeaseNamespace);
  wanted.mutable_spec()->set_holder_identity(options_.name);
  wanted.mutable_spec()->set_lease_duration_seconds(options_.lease_seconds);
  *wanted.mutable_spec()->mutable_renew_time() = api::ToMicroTime(clock_.Now());
  if (wanted.metadata().owner_references().empty()) {
    if (auto node = api.Get<corev1::Node>("", options_.name)) {
      metav1::OwnerReference& owner = *wanted.mutable_metadata()->add_owner_references();
      owner.set_api_version("v1");
      owner.set_kind("Node");
      owner.set_name(options_.name);
      owner.set_uid(node->metadata().uid());
    }
  }
  auto stored = lease_ ? api.Update(wanted) : api.Create(wanted);
  if (!stored) {
    lease_.reset();  // read again before the next try
    return stored.error();
  }
  lease_ = std::move(*stored);
  return {};
}

Result<> NodeManager::RunLease(std::stop_token stop) {
  constexpr milliseconds kFirst(200), kMost(7000);
  milliseconds wait = kFirst;
  bool told = false;
  while (!stop.stop_requested()) {
    auto renewed = RenewLease(stop);
    if (renewed) {
      wait = kFirst;
      told = false;
      Pause(clock_, std::chrono::seconds(options_.lease_seconds) / 4, stop);
      continue;
    }
    if (!told && !stop.stop_requested()) {
      log::Warn("Cannot renew the node's lease", {{"err", renewed.error()}});
    }
    told = true;
    Pause(clock_, wait, stop);
    wait = std::min(wait * 2, kMost);
  }
  return {};
}

}  // namespace keelson::kubelet

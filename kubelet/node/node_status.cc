#include "kubelet/node/node_status.h"

#include <algorithm>
#include <boost/json.hpp>

#include "lib/api/codec.h"
#include "lib/api/meta.h"
#include "lib/base/pause.h"
#include "lib/k8s/pod_util.h"

namespace keelson::kubelet {

namespace json = boost::json;
using std::chrono::milliseconds;

namespace {

constexpr char kManagedAttach[] = "volumes.kubernetes.io/controller-managed-attach-detach";
constexpr size_t kMaxImageNames = 5;
constexpr milliseconds kFastPeriod(250);
constexpr char kLeaseNamespace[] = "kube-node-lease";

void SetCondition(corev1::NodeStatus& status, const char* type, bool value, const std::string& reason,
                  const std::string& message, WallTime now) {
  corev1::NodeCondition condition;
  condition.set_type(type);
  condition.set_status(value ? "True" : "False");
  condition.set_reason(reason);
  condition.set_message(message);
  *condition.mutable_last_heartbeat_time() = api::ToTime(now);
  k8s::SetCondition(status, std::move(condition), now);
  for (auto& item : *status.mutable_conditions())
    if (item.type() == type) *item.mutable_last_heartbeat_time() = api::ToTime(now);
}

// Labels that a kubelet keeps true for as long as it runs.
bool TellsOfMachine(const std::string& label) {
  static constexpr std::string_view kLabels[] = {"kubernetes.io/hostname",
                                                 "kubernetes.io/os",
                                                 "kubernetes.io/arch",
                                                 "beta.kubernetes.io/os",
                                                 "beta.kubernetes.io/arch",
                                                 "beta.kubernetes.io/instance-type",
                                                 "node.kubernetes.io/instance-type",
                                                 "failure-domain.beta.kubernetes.io/region",
                                                 "failure-domain.beta.kubernetes.io/zone",
                                                 "topology.kubernetes.io/region",
                                                 "topology.kubernetes.io/zone"};
  return std::find(std::begin(kLabels), std::end(kLabels), label) != std::end(kLabels);
}

std::string NotReady(const NodeFacts& facts) {
  std::vector<std::string> problems;
  if (!facts.runtime) {
    problems.push_back("container runtime is down: " + facts.runtime.error().message());
  } else {
    for (const auto& condition : facts.runtime->conditions) {
      if (condition.status) continue;
      bool network = condition.type == "NetworkReady";
      if (!network && condition.type != "RuntimeReady") continue;
      problems.push_back(std::string("container runtime ") + (network ? "network " : "") +
                         "not ready: " + condition.type + "=false reason:" + condition.reason +
                         " message:" + condition.message);
    }
  }
  if (facts.unhealthy) problems.push_back(*facts.unhealthy);
  if (facts.shutting_down) problems.push_back("node is shutting down");
  std::string out;
  for (const std::string& problem : problems) out += (out.empty() ? "" : ", ") + problem;
  return problems.size() > 1 ? "[" + out + "]" : out;
}

void FillConditions(const NodeFacts& facts, WallTime now, corev1::NodeStatus& status) {
  const bool memory = facts.memory_pressure, disk = facts.disk_pressure, pids = facts.pid_pressure;
  SetCondition(
      status, "MemoryPressure", memory,
      memory ? "KubeletHasInsufficientMemory" : "KubeletHasSufficientMemory",
      memory ? "kubelet has insufficient memory available" : "kubelet has sufficient memory available", now);
  SetCondition(status, "DiskPressure", disk, disk ? "KubeletHasDiskPressure" : "KubeletHasNoDiskPressure",
               disk ? "kubelet has disk pressure" : "kubelet has no disk pressure", now);
  SetCondition(status, "PIDPressure", pids, pids ? "KubeletHasInsufficientPID" : "KubeletHasSufficientPID",
               pids ? "kubelet has insufficient PID available" : "kubelet has sufficient PID available", now);
  std::string problem = NotReady(facts);
  SetCondition(status, "Ready", problem.empty(), problem.empty() ? "KubeletReady" : "KubeletNotReady",
               problem.empty() ? "kubelet is posting ready status" : problem, now);
}

void FillImages(const std::vector<cri::Image>& images, int most, corev1::NodeStatus& status) {
  std::vector<const cri::Image*> sorted;
  for (const auto& image : images)
    if (!image.repo_tags.empty() || !image.repo_digests.empty()) sorted.push_back(&image);
  std::sort(sorted.begin(), sorted.end(), [](const cri::Image* a, const cri::Image* b) {
    return a->size != b->size ? a->size > b->size : a->id < b->id;
  });
  if (most >= 0 && sorted.size() > static_cast<size_t>(most)) sorted.resize(static_cast<size_t>(most));
  status.clear_images();
  for (const cri::Image* image : sorted) {
    auto& item = *status.add_images();
    for (const auto* names : {&image->repo_digests, &image->repo_tags})
      for (const std::string& name : *names)
        if (static_cast<size_t>(item.names_size()) < kMaxImageNames) item.add_names(name);
    item.set_size_bytes(static_cast<int64_t>(image->size));
  }
}

json::object ToJson(const corev1::NodeStatus& status) {
  json::error_code failed;
  json::value value = json::parse(api::EncodeJson(status), failed);
  return !failed && value.is_object() ? value.as_object() : json::object();
}

json::array ChangedConditions(const json::value* base, const json::value& desired, bool heartbeats_too) {
  json::array out;
  for (const json::value& item : desired.as_array()) {
    bool same = false;
    if (base && base->is_array())
      for (const json::value& old : base->as_array()) {
        if (old.at("type") != item.at("type")) continue;
        json::object a = old.as_object(), b = item.as_object();
        if (!heartbeats_too) {
          a.erase("lastHeartbeatTime");
          b.erase("lastHeartbeatTime");
        }
        same = a == b;
      }
    if (!same) out.push_back(item);
  }
  return out;
}

}  // namespace

void FillNodeStatus(const NodeOptions& options, const Machine& machine, const NodeFacts& facts, WallTime now,
                    corev1::NodeStatus& status) {
  k8s::ResourceList capacity = CapacityOf(machine, options.reservations);
  k8s::ResourceList allocatable = AllocatableOf(machine, options.reservations);
  for (const auto& [name, amount] : capacity) (*status.mutable_capacity())[name] = amount.ToQuantity();
  for (const auto& [name, amount] : allocatable) (*status.mutable_allocatable())[name] = amount.ToQuantity();
  for (const auto& [name, amount] : facts.extended) {
    (*status.mutable_capacity())[name] = api::Amount::FromInt(amount.capacity).ToQuantity();
    (*status.mutable_allocatable())[name] = api::Amount::FromInt(amount.allocatable).ToQuantity();
  }
  status.clear_addresses();
  auto add = [&status](const char* type, const std::string& address) {
    auto& item = *status.add_addresses();
    item.set_type(type);
    item.set_address(address);
  };
  for (const std::string& ip : options.ips) add("InternalIP", ip);
  add("Hostname", options.hostname);
  status.mutable_daemon_endpoints()->mutable_kubelet_endpoint()->set_port(options.port);
  auto& info = *status.mutable_node_info();
  info.set_machine_id(machine.machine_id);
  info.set_system_uuid(machine.system_uuid);
  info.set_boot_id(machine.boot_id);
  info.set_kernel_version(machine.kernel_version);
  info.set_os_image(machine.os_image);
  if (!facts.runtime_version.empty()) info.set_container_runtime_version(facts.runtime_version);
  info.set_kubelet_version(options.kubelet_version);
  info.set_operating_system("linux");
  info.set_architecture(machine.architecture);
  info.mutable_swap()->set_capacity(machine.swap_bytes);
  FillImages(facts.images, options.max_images, status);
  if (facts.runtime) {
    status.clear_runtime_handlers();
    for (const auto& handler : facts.runtime->handlers) {
      auto& item = *status.add_runtime_handlers();
      item.set_name(handler.name);
      item.mutable_features()->set_recursive_read_only_mounts(handler.recursive_read_only_mounts);
      item.mutable_features()->set_user_namespaces(handler.user_namespaces);
    }
  }
  FillConditions(facts, now, status);
}

corev1::Node NewNode(const NodeOptions& options) {
  corev1::Node node;
  auto& meta = *node.mutable_metadata();
  meta.set_name(options.name);
  for (const auto& [name, value] : options.labels) (*meta.mutable_labels())[name] = value;
  (*meta.mutable_annotations())[kManagedAttach] = "true";
  if (!options.provider_id.empty()) node.mutable_spec()->set_provider_id(options.provider_id);
  for (const auto& taint : options.taints) *node.mutable_spec()->add_taints() = taint;
  return node;
}

std::optional<std::string> NodeStatusPatch(const corev1::NodeStatus& base, const corev1::NodeStatus& desired,
                                           bool heartbeats_too) {
  json::object old = ToJson(base), wanted = ToJson(desired), changed;
  for (const auto& field : wanted) {
    const json::value* before = old.if_contains(field.key());
    if (before && *before == field.value()) continue;
    if (field.key() == "conditions") {
      json::array conditions = ChangedConditions(before, field.value(), heartbeats_too);
      if (!conditions.empty()) changed["conditions"] = std::move(conditions);
    } else if (field.key() == "addresses" && before) {
      json::array list = {
          {{"$patch", "replace"}}};  // the list would merge by type, and two may be of one type
      for (const json::value& item : field.value().as_array()) list.push_back(item);
      changed["addresses"] = std::move(list);
    } else {
      changed[field.key()] = field.value();
    }
  }
  if (changed.empty()) return std::nullopt;
  json::object patch;
  patch["status"] = std::move(changed);
  return json::serialize(patch);
}

NodeManager::NodeManager(client::RestClient api, NodeOptions options, FactsFunction facts, Clock& clock)
    : api_(std::move(api)),
      options_(std::move(options)),
      facts_(std::move(facts)),
      clock_(clock),
      machine_(ReadMachine(options_.root_dir)) {}

Result<> NodeManager::Register(std::stop_token stop) {
  auto api = api_.With(stop);
  corev1::Node wanted = NewNode(options_);
  auto created = api.Create(wanted);
  if (created) {
    log::Info("Registered node", {{"node", options_.name}});
    return {};
  }
  if (!created.error().Is(Code::kAlreadyExists)) return created.error().Wrap("register node");
  // It is from an earlier start, or an administrator made it: what tells of the machine is put right, the
  // rest is theirs, such as labels that have been taken away since.
  json::object labels, annotations;
  for (const auto& [name, value] : options_.labels) {
    if (TellsOfMachine(name)) labels[name] = value;
  }
  annotations[kManagedAttach] = "true";
  json::object patch = {{"metadata", {{"labels", labels}, {"annotations", annotations}}}};
  auto patched =
      api.Patch<corev1::Node>("", options_.name, client::PatchType::kStrategicMerge, json::serialize(patch));
  if (!patched) return patched.error().Wrap("update labels of node");
  return {};
}

Result<> NodeManager::UpdateStatus(std::stop_token stop) {
  auto api = api_.With(stop);
  NodeFacts facts = facts_(stop);
  ASSIGN_OR_RETURN(corev1::Node node, api.Get<corev1::Node>("", options_.name));
  corev1::NodeStatus desired = node.status();
  FillNodeStatus(options_, machine_, facts, clock_.Now(), desired);
  bool due = !reported_ || clock_.SteadyNow() - *reported_ >= options_.report_frequency;
  auto patch = NodeStatusPatch(node.status(), desired, due);
  if (!patch) return {};
  auto stored = api.Patch<corev1::Node>("", options_.name, client::PatchType::kStrategicMerge,
                                        std::move(*patch), "status");
  if (!stored) return stored.error().Wrap("write node status");
  reported_ = clock_.SteadyNow();
  return {};
}

Result<> NodeManager::RunStatus(std::stop_token stop, const std::function<void()>& ready) {
  constexpr milliseconds kFirst(200), kMost(7000);
  milliseconds wait = kFirst;
  while (options_.register_node) {
    auto registered = Register(stop);
    if (registered) break;
    if (stop.stop_requested()) return {};
    log::Warn("Cannot register the node", {{"error", registered.error()}});
    if (!Pause(clock_, wait, stop)) return {};
    wait = std::min(wait * 2, kMost);
  }
  bool told = false, was_ready = false;
  while (!stop.stop_requested()) {
    auto updated = UpdateStatus(stop);
    if (!updated && !stop.stop_requested())
      log::Warn("Cannot update the node's status", {{"error", updated.error()}});
    if (updated && !told) {
      ready();
      told = true;
    }
    // Pods wait for a node that starts: that it has become ready is told at once, not at the next round.
    const milliseconds pause = told ? options_.update_frequency : kFastPeriod;
    if (was_ready)
      AwaitRound(pause, stop);
    else
      was_ready = AwaitReadiness(pause, stop);
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
    if (NotReady(facts_(stop)).empty()) return true;
    if (!Pause(clock_, kFastPeriod, stop)) break;
  }
  return false;
}

Result<> NodeManager::RenewLease(std::stop_token stop) {
  auto api = api_.With(stop);
  if (!lease_) {
    auto found = api.Get<coordinationv1::Lease>(kLeaseNamespace, options_.name);
    if (found)
      lease_ = std::move(*found);
    else if (!found.error().Is(Code::kNotFound))
      return found.error();
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
    if (!told && !stop.stop_requested())
      log::Warn("Cannot renew the node's lease", {{"error", renewed.error()}});
    told = true;
    Pause(clock_, wait, stop);
    wait = std::min(wait * 2, kMost);
  }
  return {};
}

}  // namespace keelson::kubelet

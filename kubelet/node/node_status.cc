#include "kubelet/node/node_status.h"

#include <algorithm>
#include <set>

#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

constexpr size_t kMaxImageNames = 5;

void SetCondition(corev1::NodeStatus& status, const char* type, bool value, const std::string& reason,
                  const std::string& message, WallTime now) {
  corev1::NodeCondition condition;
  condition.set_type(type);
  condition.set_status(value ? "True" : "False");
  condition.set_reason(reason);
  condition.set_message(message);
  *condition.mutable_last_heartbeat_time() = api::ToTime(now);
  k8s::SetCondition(status, std::move(condition), now);
  for (auto& item : *status.mutable_conditions()) {
    if (item.type() == type) *item.mutable_last_heartbeat_time() = api::ToTime(now);
  }
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
  for (const auto& image : images) {
    if (!image.repo_tags.empty() || !image.repo_digests.empty()) sorted.push_back(&image);
  }
  std::sort(sorted.begin(), sorted.end(), [](const cri::Image* a, const cri::Image* b) {
    return a->size != b->size ? a->size > b->size : a->id < b->id;
  });
  if (most >= 0 && sorted.size() > static_cast<size_t>(most)) sorted.resize(static_cast<size_t>(most));
  status.clear_images();
  for (const cri::Image* image : sorted) {
    auto& item = *status.add_images();
    for (const auto* names : {&image->repo_digests, &image->repo_tags}) {
      for (const std::string& name : *names) {
        if (static_cast<size_t>(item.names_size()) < kMaxImageNames) item.add_names(name);
      }
    }
    item.set_size_bytes(static_cast<int64_t>(image->size));
  }
}

// What is the kubelet's own to say, and after it what follows from what others say: extended resources that
// an administrator has put there can be had as far as nothing is set aside of them.
void FillResources(const NodeOptions& options, const Machine& machine, const NodeFacts& facts,
                   corev1::NodeStatus& status) {
  auto& capacity = *status.mutable_capacity();
  auto& allocatable = *status.mutable_allocatable();
  const k8s::ResourceList all = CapacityOf(machine, options.reservations);
  for (const auto& [name, amount] : facts.extended) {
    capacity[name] = api::Amount::FromInt(amount.capacity).ToQuantity();
  }
  // Huge page sizes that the kernel no longer has, storage that no longer has a figure, resources without a source.
  std::set<std::string> gone;
  for (const auto& [name, amount] : capacity) {
    if ((k8s::IsHugePages(name) || name == "ephemeral-storage") && !all.count(name)) gone.insert(name);
  }
  for (const auto& [name, amount] : allocatable) {
    if (!capacity.count(name) && !all.count(name)) gone.insert(name);
  }
  for (const std::string& name : gone) {
    capacity.erase(name);
    allocatable.erase(name);
  }
  for (const auto& [name, amount] : capacity) {
    if (k8s::IsExtendedResource(name)) allocatable[name] = amount;
  }
  for (const auto& [name, amount] : facts.extended) {
    allocatable[name] = api::Amount::FromInt(amount.allocatable).ToQuantity();
  }
  for (const auto& [name, amount] : all) capacity[name] = amount.ToQuantity();
  for (const auto& [name, amount] : AllocatableOf(machine, options.reservations)) {
    allocatable[name] = amount.ToQuantity();
  }
}

// With a cloud the addresses are its controller's to tell; until it does, those that were given count.
void FillAddresses(const NodeOptions& options, const NodeFacts& facts, corev1::NodeStatus& status) {
  if (facts.address_problem) return;
  if (options.external_cloud && (!status.addresses().empty() || !options.ips_given)) return;
  if (options.ips.empty()) return;
  status.clear_addresses();
  auto add = [&status](const char* type, const std::string& address) {
    auto& item = *status.add_addresses();
    item.set_type(type);
    item.set_address(address);
  };
  for (const std::string& ip : options.ips) add("InternalIP", ip);
  add("Hostname", options.hostname);
}

void FillRuntimeFeatures(const cri::RuntimeStatus& runtime, corev1::NodeStatus& status) {
  status.clear_runtime_handlers();
  for (const auto& handler : runtime.handlers) {
    auto& item = *status.add_runtime_handlers();
    item.set_name(handler.name);
    item.mutable_features()->set_recursive_read_only_mounts(handler.recursive_read_only_mounts);
    item.mutable_features()->set_user_namespaces(handler.user_namespaces);
  }
  // Runtimes that report handlers report this too.
  if (runtime.supplemental_groups_policy || !runtime.handlers.empty()) {
    status.mutable_features()->set_supplemental_groups_policy(runtime.supplemental_groups_policy);
  }
}

}  // namespace

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
  if (facts.csi_node_problem) problems.push_back(*facts.csi_node_problem);
  if (facts.shutting_down) problems.push_back("node is shutting down");
  std::string out;
  for (const std::string& problem : problems) out += (out.empty() ? "" : ", ") + problem;
  return problems.size() > 1 ? "[" + out + "]" : out;
}

void FillNodeStatus(const NodeOptions& options, const Machine& machine, const NodeFacts& facts, WallTime now,
                    corev1::NodeStatus& status) {
  FillResources(options, machine, facts, status);
  FillAddresses(options, facts, status);
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
  if (machine.swap_bytes > 0) info.mutable_swap()->set_capacity(machine.swap_bytes);
  if (facts.images) FillImages(*facts.images, options.max_images, status);
  if (facts.runtime) FillRuntimeFeatures(*facts.runtime, status);
  status.clear_volumes_in_use();
  for (const std::string& volume : facts.volumes_in_use) status.add_volumes_in_use(volume);
  status.clear_declared_features();
  for (const std::string& feature : options.declared_features) status.add_declared_features(feature);
  FillConditions(facts, now, status);
}

}  // namespace keelson::kubelet

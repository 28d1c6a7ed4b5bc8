#include "controlplane/controllers/endpoints/endpoint_pods.h"

#include <algorithm>

#include "lib/api/meta.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {

EndpointPodPointer ProjectPod(const corev1::Pod& pod) {
  if (k8s::IsTerminal(pod)) return nullptr;
  auto out = std::make_shared<EndpointPod>();
  for (const corev1::PodIP& ip : pod.status().pod_ips()) out->ips.push_back(ip.ip());
  if (out->ips.empty() && !pod.status().pod_ip().empty()) out->ips.push_back(pod.status().pod_ip());
  if (out->ips.empty()) return nullptr;
  out->ns = pod.metadata().namespace_();
  out->name = pod.metadata().name();
  out->uid = pod.metadata().uid();
  out->node = pod.spec().node_name();
  out->hostname = pod.spec().hostname();
  out->subdomain = pod.spec().subdomain();
  out->labels.insert(pod.metadata().labels().begin(), pod.metadata().labels().end());
  auto add_ports = [&](const corev1::Container& container) {
    for (const corev1::ContainerPort& port : container.ports()) {
      if (port.name().empty()) continue;
      out->ports.push_back(
          {port.name(), port.protocol().empty() ? "TCP" : port.protocol(), port.container_port()});
    }
  };
  for (const corev1::Container& container : pod.spec().containers()) add_ports(container);
  for (const corev1::Container& container : pod.spec().init_containers()) {
    if (container.restart_policy() == "Always") add_ports(container);
  }
  out->ready = k8s::IsReady(pod);
  out->terminating = k8s::IsTerminating(pod);
  const corev1::PodCondition* condition = k8s::FindCondition(pod.status(), k8s::kPodReady);
  if (condition && condition->has_last_transition_time()) {
    out->ready_changed = api::FromTime(condition->last_transition_time());
  }
  return out;
}

bool Selects(const google::protobuf::Map<std::string, std::string>& selector,
             const std::map<std::string, std::string>& labels) {
  return std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
    auto it = labels.find(wanted.first);
    return it != labels.end() && it->second == wanted.second;
  });
}

int32_t TargetPort(const EndpointPod& pod, const corev1::ServicePort& port) {
  const std::string protocol = port.protocol().empty() ? "TCP" : port.protocol();
  if (!k8s::IsString(port.target_port())) {
    return port.target_port().int_val() != 0 ? port.target_port().int_val() : port.port();
  }
  for (const EndpointPod::Port& candidate : pod.ports) {
    if (candidate.name == port.target_port().str_val() && candidate.protocol == protocol) {
      return candidate.number;
    }
  }
  return 0;
}

EndpointPods::EndpointPods(client::InformerFactory& informers) {
  informers.Get<corev1::Pod>().AddHandler([this](const auto& change) { OnPod(change); });
  informers.Get<corev1::Service>().AddHandler([this](const auto& change) { OnServiceChange(change); });
}

void EndpointPods::OnService(std::function<void(const std::string&)> handler) {
  handlers_.push_back(std::move(handler));
}

void EndpointPods::CollectServices(const EndpointPod& pod, std::set<std::string>& keys) const {
  auto services = services_.find(pod.ns);
  if (services == services_.end()) return;
  for (const auto& [name, service] : services->second) {
    bool selected = std::all_of(service.labels.begin(), service.labels.end(), [&](const auto& wanted) {
      auto it = pod.labels.find(wanted.first);
      return it != pod.labels.end() && it->second == wanted.second;
    });
    if (selected) keys.insert(service.key);
  }
}

void EndpointPods::OnPod(const client::Change<corev1::Pod>& change) {
  EndpointPodPointer now = change.new_object ? ProjectPod(*change.new_object) : nullptr;
  const metav1::ObjectMeta& meta = change.object().metadata();
  std::set<std::string> keys;
  {
    MutexLock lock(mutex_);
    auto& pods = pods_[meta.namespace_()];
    EndpointPodPointer before;
    if (auto it = pods.find(meta.name()); it != pods.end()) before = it->second;
    if (before && now && *before == *now) return;
    if (!before && !now) return;
    if (before) CollectServices(*before, keys);
    if (now) CollectServices(*now, keys);
    if (now) {
      pods[meta.name()] = std::move(now);
    } else {
      pods.erase(meta.name());
      if (pods.empty()) pods_.erase(meta.namespace_());
    }
  }
  for (const std::string& key : keys) {
    for (const auto& handler : handlers_) handler(key);
  }
}

void EndpointPods::OnServiceChange(const client::Change<corev1::Service>& change) {
  const metav1::ObjectMeta& meta = change.object().metadata();
  {
    MutexLock lock(mutex_);
    auto& services = services_[meta.namespace_()];
    if (change.new_object && !change.new_object->spec().selector().empty()) {
      const auto& selector = change.new_object->spec().selector();
      services[meta.name()] = {change.key, {selector.begin(), selector.end()}};
    } else {
      services.erase(meta.name());
      if (services.empty()) services_.erase(meta.namespace_());
    }
  }
  for (const auto& handler : handlers_) handler(change.key);
}

std::vector<EndpointPodPointer> EndpointPods::Select(const corev1::Service& service) const {
  std::vector<EndpointPodPointer> out;
  MutexLock lock(mutex_);
  auto pods = pods_.find(service.metadata().namespace_());
  if (pods == pods_.end()) return out;
  for (const auto& [name, pod] : pods->second) {
    if (Selects(service.spec().selector(), pod->labels)) out.push_back(pod);
  }
  return out;
}

}  // namespace keelson::controllers

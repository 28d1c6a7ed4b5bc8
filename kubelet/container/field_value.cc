#include "kubelet/container/field_value.h"

#include <map>

#include "lib/k8s/field_error.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

using StringMap = google::protobuf::Map<std::string, std::string>;

std::string FormatMap(const StringMap& values) {
  std::map<std::string, std::string> sorted(values.begin(), values.end());
  std::string out;
  for (const auto& [key, value] : sorted) {
    if (!out.empty()) out += "\n";
    out += key + "=" + k8s::Quote(value);
  }
  return out;
}

// metadata.labels['key'] -> key
bool Subscript(std::string_view path, std::string_view field, std::string& key) {
  if (path.substr(0, field.size()) != field) return false;
  std::string_view rest = path.substr(field.size());
  if (rest.size() < 5 || rest.substr(0, 2) != "['" || rest.substr(rest.size() - 2) != "']") return false;
  key = std::string(rest.substr(2, rest.size() - 4));
  return true;
}

std::string ValueOf(const StringMap& values, const std::string& key) {
  auto it = values.find(key);
  return it == values.end() ? std::string() : it->second;
}

template <typename List>
std::string JoinIps(const List& ips) {
  std::string out;
  for (const auto& item : ips) out += (out.empty() ? "" : ",") + item.ip();
  return out;
}

int64_t DivideUp(int64_t value, int64_t by) { return by <= 0 ? value : (value + by - 1) / by; }

}  // namespace

Result<std::string> FieldValue(const corev1::Pod& pod, std::string_view path) {
  std::string key;
  const metav1::ObjectMeta& meta = pod.metadata();
  if (Subscript(path, "metadata.labels", key)) return ValueOf(meta.labels(), key);
  if (Subscript(path, "metadata.annotations", key)) return ValueOf(meta.annotations(), key);
  if (path == "metadata.labels") return FormatMap(meta.labels());
  if (path == "metadata.annotations") return FormatMap(meta.annotations());
  if (path == "metadata.name") return meta.name();
  if (path == "metadata.namespace") return meta.namespace_();
  if (path == "metadata.uid") return meta.uid();
  if (path == "spec.nodeName") return pod.spec().node_name();
  if (path == "spec.serviceAccountName") return pod.spec().service_account_name();
  if (path == "status.podIP") return pod.status().pod_ip();
  if (path == "status.podIPs") return JoinIps(pod.status().pod_ips());
  if (path == "status.hostIP") return pod.status().host_ip();
  if (path == "status.hostIPs") return JoinIps(pod.status().host_ips());
  return Error(Code::kInvalid, "unsupported fieldPath: " + std::string(path));
}

Result<std::string> ResourceValue(const corev1::Pod& pod, const corev1::ResourceFieldSelector& selector,
                                  std::string_view default_container, const k8s::ResourceList& allocatable) {
  std::string name(selector.container_name().empty() ? default_container : selector.container_name());
  const corev1::Container* container = k8s::FindContainer(pod.spec(), name);
  if (!container) return Error(Code::kInvalid, "container " + name + " not found");
  const std::string& wanted = selector.resource();
  size_t dot = wanted.find('.');
  std::string_view kind = std::string_view(wanted).substr(0, dot);
  if (dot == std::string::npos || (kind != "limits" && kind != "requests")) {
    return Error(Code::kInvalid, "unsupported container resource : " + wanted);
  }
  std::string resource = wanted.substr(dot + 1);
  const auto& amounts =
      kind == "limits" ? container->resources().limits() : container->resources().requests();
  auto it = amounts.find(resource);
  api::Amount amount = it != amounts.end() ? api::Amount::Of(it->second) : api::Amount();
  if (kind == "limits" && amount.IsZero()) amount = k8s::AmountOf(allocatable, resource);
  api::Amount divisor = selector.has_divisor() ? api::Amount::Of(selector.divisor()) : api::Amount();
  if (divisor.IsZero()) divisor = api::Amount::FromInt(1);
  if (resource == "cpu") return std::to_string(DivideUp(amount.MilliValue(), divisor.MilliValue()));
  return std::to_string(DivideUp(amount.Value(), divisor.Value()));
}

}  // namespace keelson::kubelet

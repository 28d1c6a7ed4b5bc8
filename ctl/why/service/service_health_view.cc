#include "ctl/why/service/service_health_view.h"

#include "lib/api/selector.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::ctl {

namespace {

constexpr char kServiceNameLabel[] = "kubernetes.io/service-name";

}  // namespace

std::string ServiceHealthView::Name() const {
  return service.metadata().namespace_() + "/" + service.metadata().name();
}

std::string ServiceHealthView::Kubectl(const std::string& words) const {
  return "kubectl -n " + service.metadata().namespace_() + " " + words;
}

std::vector<const corev1::Pod*> ServiceHealthView::Selected() const {
  std::vector<const corev1::Pod*> out;
  if (service.spec().selector().empty()) return out;
  const api::LabelSelector selector = api::LabelSelector::FromMap(service.spec().selector());
  for (const corev1::Pod& pod : pods) {
    if (selector.Matches(pod.metadata().labels())) out.push_back(&pod);
  }
  return out;
}

Result<ServiceHealthView> ReadServiceHealth(const client::RestClient& api, const std::string& ns,
                                            const std::string& name) {
  ServiceHealthView view;
  KEELSON_ASSIGN_OR_RETURN(view.service, api.Get<corev1::Service>(ns, name));
  KEELSON_ASSIGN_OR_RETURN(view.slices,
                           api.List<discoveryv1::EndpointSlice>(
                               ns, {.label_selector = std::string(kServiceNameLabel) + "=" + name}));
  KEELSON_ASSIGN_OR_RETURN(view.pods, api.List<corev1::Pod>(ns));
  std::erase_if(view.pods, [](const corev1::Pod& pod) { return k8s::IsTerminal(pod); });
  KEELSON_ASSIGN_OR_RETURN(view.policies, api.List<networkingv1::NetworkPolicy>(ns));
  KEELSON_ASSIGN_OR_RETURN(const std::vector<corev1::Node> nodes, api.List<corev1::Node>());
  for (const corev1::Node& node : nodes) {
    if (k8s::IsReady(node)) view.nodes.push_back(node.metadata().name());
  }
  const Result<corev1::Service> dns = api.Get<corev1::Service>("kube-system", "kube-dns");
  if (!dns && !dns.error().Is(Code::kNotFound) && !dns.error().Is(Code::kForbidden)) return dns.error();
  view.has_dns = dns || dns.error().Is(Code::kForbidden);
  KEELSON_ASSIGN_OR_RETURN(view.events, ReadEventsOf(api, ns, view.service.metadata().uid()));
  return view;
}

}  // namespace keelson::ctl

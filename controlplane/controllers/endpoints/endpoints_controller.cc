#include "controlplane/controllers/endpoints/endpoints_controller.h"

#include <algorithm>
#include <cmath>

#include <google/protobuf/util/message_differencer.h>

#include "controlplane/controllers/endpoints/slice_plan.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr int kMaxAddresses = 1000;
constexpr char kOverCapacity[] = "endpoints.kubernetes.io/over-capacity";
constexpr char kManagedBy[] = "endpoints.kubernetes.io/managed-by";
constexpr char kManager[] = "endpoint-controller";

corev1::EndpointAddress MakeAddress(const corev1::Service& service, const EndpointPod& pod,
                                    const std::string& ip) {
  corev1::EndpointAddress address;
  address.set_ip(ip);
  if (!pod.hostname.empty() && pod.subdomain == service.metadata().name()) address.set_hostname(pod.hostname);
  if (!pod.node.empty()) address.set_node_name(pod.node);
  auto& target = *address.mutable_target_ref();
  target.set_kind("Pod");
  target.set_namespace_(pod.ns);
  target.set_name(pod.name);
  target.set_uid(pod.uid);
  return address;
}

std::vector<corev1::EndpointPort> PortsOf(const corev1::Service& service, const EndpointPod& pod) {
  std::vector<corev1::EndpointPort> ports;
  for (const corev1::ServicePort& port : service.spec().ports()) {
    const int32_t number = TargetPort(pod, port);
    if (number == 0) continue;
    corev1::EndpointPort& out = ports.emplace_back();
    if (!port.name().empty()) out.set_name(port.name());
    out.set_port(number);
    out.set_protocol(port.protocol().empty() ? "TCP" : port.protocol());
    if (port.has_app_protocol()) out.set_app_protocol(port.app_protocol());
  }
  std::sort(ports.begin(), ports.end(),
            [](const auto& a, const auto& b) { return api::EncodeRaw(a) < api::EncodeRaw(b); });
  return ports;
}

template <typename Addresses>
void SortByIp(Addresses& addresses) {
  std::sort(addresses.begin(), addresses.end(), [](const auto& a, const auto& b) {
    return a.ip() != b.ip() ? a.ip() < b.ip() : a.target_ref().uid() < b.target_ref().uid();
  });
}

// Each subset keeps its proportional part, rounded up.
template <typename Of>
void Cut(std::vector<corev1::EndpointSubset>& subsets, int total, int room, Of addresses_of) {
  int left = room;
  for (corev1::EndpointSubset& subset : subsets) {
    auto* addresses = addresses_of(subset);
    const int part =
        static_cast<int>(std::ceil(static_cast<double>(addresses->size()) / std::max(total, 1) * room));
    const int keep = std::min({part, left, addresses->size()});
    addresses->DeleteSubrange(keep, addresses->size() - keep);
    left -= keep;
  }
}

}  // namespace

bool TruncateSubsets(std::vector<corev1::EndpointSubset>& subsets) {
  int ready = 0, not_ready = 0;
  for (const auto& subset : subsets) {
    ready += subset.addresses_size();
    not_ready += subset.not_ready_addresses_size();
  }
  if (ready + not_ready <= kMaxAddresses) return false;
  Cut(subsets, not_ready, std::max(kMaxAddresses - ready, 0),
      [](auto& subset) { return subset.mutable_not_ready_addresses(); });
  if (ready > kMaxAddresses) {
    Cut(subsets, ready, kMaxAddresses, [](auto& subset) { return subset.mutable_addresses(); });
  }
  std::erase_if(subsets,
                [](const auto& s) { return s.addresses_size() + s.not_ready_addresses_size() == 0; });
  return true;
}

namespace {

void SetMetadata(const corev1::Service& service, bool truncated, corev1::Endpoints& endpoints) {
  metav1::ObjectMeta& meta = *endpoints.mutable_metadata();
  meta.set_name(service.metadata().name());
  meta.set_namespace_(service.metadata().namespace_());
  *meta.mutable_labels() = service.metadata().labels();
  if (IsHeadless(service)) {
    (*meta.mutable_labels())[kHeadless] = "";
  } else {
    meta.mutable_labels()->erase(kHeadless);
  }
  (*meta.mutable_labels())[kManagedBy] = kManager;
  if (truncated) {
    (*meta.mutable_annotations())[kOverCapacity] = "truncated";
  } else {
    meta.mutable_annotations()->erase(kOverCapacity);
  }
}

}  // namespace

std::vector<corev1::EndpointSubset> DesiredSubsets(const corev1::Service& service,
                                                   const std::vector<EndpointPodPointer>& pods) {
  const std::string family = FamiliesOf(service).front();
  const bool bare = IsHeadless(service) && service.spec().ports_size() == 0;
  const bool publish_all = service.spec().publish_not_ready_addresses();
  std::map<std::string, corev1::EndpointSubset> subsets;
  for (const EndpointPodPointer& pod : pods) {
    if (pod->terminating && !publish_all) continue;
    auto ip = std::find_if(pod->ips.begin(), pod->ips.end(), [&](const std::string& candidate) {
      return IsIpv6Address(candidate) == (family == "IPv6");
    });
    if (ip == pod->ips.end()) continue;
    std::vector<corev1::EndpointPort> ports = PortsOf(service, *pod);
    if (ports.empty() && !bare) continue;
    std::string key;
    for (const auto& port : ports) key += api::EncodeRaw(port) + "\n";
    corev1::EndpointSubset& subset = subsets[key];
    if (subset.ports_size() == 0) {
      for (auto& port : ports) *subset.add_ports() = std::move(port);
    }
    corev1::EndpointAddress address = MakeAddress(service, *pod, *ip);
    *(publish_all || pod->ready ? subset.add_addresses() : subset.add_not_ready_addresses()) =
        std::move(address);
  }
  std::vector<corev1::EndpointSubset> out;
  for (auto& [key, subset] : subsets) {
    SortByIp(*subset.mutable_addresses());
    SortByIp(*subset.mutable_not_ready_addresses());
    out.push_back(std::move(subset));
  }
  return out;
}

EndpointsController::EndpointsController(client::RestClient api, client::InformerFactory& informers,
                                         client::EventRecorder& events, Clock& clock, EndpointPods& pods)
    : Controller("endpoint", clock, 2),
      api_(std::move(api)),
      events_(events),
      pods_(pods),
      services_(informers.Get<corev1::Service>()),
      endpoints_(informers.Get<corev1::Endpoints>()) {
  pods_.OnService([this](const std::string& key) { queue().Add(key); });
  endpoints_.AddHandler([this](const client::Change<corev1::Endpoints>& change) {
    // Endpoints without a Service: checked once at start, and deleted if this controller created them.
    if (!change.new_object || !change.old_object) queue().Add(change.key);
  });
}

Result<Requeue> EndpointsController::Reconcile(const std::string& key, std::stop_token stop) {
  const client::RestClient api = api_.With(stop);
  auto service = services_.Get(key);
  auto there = endpoints_.Get(key);
  if (!service) {
    trigger_times_.Forget(key);
    if (!there || !there->metadata().labels().contains(kManagedBy)) return Requeue{};
    auto [ns, name] = api::SplitKey(key);
    Result<> deleted = api.Delete<corev1::Endpoints>(ns, name, {.uid = there->metadata().uid()});
    if (!deleted && !deleted.error().Is(Code::kNotFound)) return deleted.error().Wrap("delete Endpoints");
    return Requeue{};
  }
  if (service->spec().type() == "ExternalName" || service->spec().selector().empty()) return Requeue{};
  if (service->metadata().has_deletion_timestamp()) return Requeue{};

  const std::vector<EndpointPodPointer> pods = pods_.Select(*service);
  const std::optional<WallTime> trigger = trigger_times_.Next(*service, pods);
  std::vector<corev1::EndpointSubset> subsets = DesiredSubsets(*service, pods);
  const bool truncated = TruncateSubsets(subsets);
  corev1::Endpoints wanted;
  if (there) wanted = *there;
  SetMetadata(*service, truncated, wanted);
  wanted.clear_subsets();
  for (auto& subset : subsets) *wanted.add_subsets() = std::move(subset);
  if (there && MessageDifferencer::Equals(wanted, *there)) return Requeue{};
  SetTriggerTime(trigger, *wanted.mutable_metadata());

  Result<corev1::Endpoints> stored = there ? api.Update(wanted) : api.Create(wanted);
  if (stored || IsNamespaceTerminating(stored.error())) return Requeue{};
  if (!stored.error().Is(Code::kConflict) && !stop.stop_requested()) {
    events_.Record(*service, "Warning", there ? "FailedToUpdateEndpoint" : "FailedToCreateEndpoint",
                   "Failed to write endpoint " + key + ": " + stored.error().message());
  }
  return stored.error().Wrap("write Endpoints");
}

}  // namespace keelson::controllers

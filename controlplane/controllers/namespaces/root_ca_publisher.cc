#include "controlplane/controllers/namespaces/root_ca_publisher.h"

#include "controlplane/controllers/common/metrics.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

constexpr char kName[] = "kube-root-ca.crt";
constexpr char kDataKey[] = "ca.crt";
constexpr char kDescription[] = "kubernetes.io/description";
constexpr char kDescriptionText[] =
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such "
    "as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
    "Kubernetes "
    "clusters.";

}  // namespace

RootCaPublisher::RootCaPublisher(client::RestClient api, client::InformerFactory& informers,
                                 client::EventRecorder&, Clock& clock, std::string ca_pem)
    : Controller("root_ca_cert_publisher", clock),
      api_(std::move(api)),
      namespaces_(informers.Get<corev1::Namespace>()),
      maps_(informers.Get<corev1::ConfigMap>({.field_selector = std::string("metadata.name=") + kName})),
      ca_pem_(std::move(ca_pem)) {
  namespaces_.AddHandler([this](const auto& change) { queue().Add(change.key); });
  maps_.AddHandler([this](const auto& change) { queue().Add(api::SplitKey(change.key).first); });
}

Result<Requeue> RootCaPublisher::Reconcile(const std::string& key, std::stop_token stop) {
  static metrics::Family& total = TheMetrics().root_ca_cert_publisher_sync_total;
  static metrics::Family& seconds = TheMetrics().root_ca_cert_publisher_sync_duration_seconds;
  const SteadyTime begin = clock().SteadyNow();
  Result<Requeue> synced = Publish(key, stop);
  const std::string code = std::to_string(synced ? 200 : HttpStatus(synced.error().code()));
  total.With({code}).Increment();
  seconds.HistogramWith({code}).Observe(std::chrono::duration<double>(clock().SteadyNow() - begin).count());
  return synced;
}

Result<Requeue> RootCaPublisher::Publish(const std::string& key, std::stop_token stop) {
  auto ns = namespaces_.Get(key);
  if (!ns || ns->status().phase() != "Active" || ns->metadata().has_deletion_timestamp()) return Requeue{};
  auto there = maps_.Get(key, kName);
  corev1::ConfigMap wanted;
  if (there) wanted = *there;
  wanted.mutable_metadata()->set_name(kName);
  wanted.mutable_metadata()->set_namespace_(key);
  (*wanted.mutable_metadata()->mutable_annotations())[kDescription] = kDescriptionText;
  wanted.clear_data();
  wanted.clear_binary_data();
  (*wanted.mutable_data())[kDataKey] = ca_pem_;

  const client::RestClient api = api_.With(stop);
  if (!there) {
    Result<corev1::ConfigMap> created = api.Create(wanted);
    if (created || created.error().Is(Code::kAlreadyExists)) return Requeue{};
    if (created.error().Is(Code::kNotFound) || IsNamespaceTerminating(created.error())) return Requeue{};
    return created.error().Wrap("publish the root CA");
  }
  auto data = there->data().find(kDataKey);
  auto description = there->metadata().annotations().find(kDescription);
  const bool right = there->data().size() == 1 && data != there->data().end() && data->second == ca_pem_ &&
                     there->binary_data().empty() && description != there->metadata().annotations().end() &&
                     description->second == kDescriptionText;
  if (right) return Requeue{};
  KEELSON_RETURN_IF_ERROR(api.Update(wanted));
  return Requeue{};
}

}  // namespace keelson::controllers

#include "controlplane/controllers/namespaces/service_account_controller.h"

#include "lib/api/meta.h"

namespace keelson::controllers {

ServiceAccountController::ServiceAccountController(client::RestClient api, client::InformerFactory& informers,
                                                   client::EventRecorder&, Clock& clock)
    : Controller("serviceaccount", clock),
      api_(std::move(api)),
      namespaces_(informers.Get<corev1::Namespace>()),
      accounts_(informers.Get<corev1::ServiceAccount>({.field_selector = "metadata.name=default"})) {
  namespaces_.AddHandler([this](const auto& change) { queue().Add(change.key); });
  accounts_.AddHandler([this](const client::Change<corev1::ServiceAccount>& change) {
    if (!change.new_object) queue().Add(api::SplitKey(change.key).first);
  });
}

Result<Requeue> ServiceAccountController::Reconcile(const std::string& key, std::stop_token stop) {
  auto ns = namespaces_.Get(key);
  if (!ns || ns->status().phase() != "Active" || ns->metadata().has_deletion_timestamp()) return Requeue{};
  if (accounts_.Get(key, "default")) return Requeue{};
  corev1::ServiceAccount account;
  account.mutable_metadata()->set_name("default");
  account.mutable_metadata()->set_namespace_(key);
  Result<corev1::ServiceAccount> created = api_.With(stop).Create(account);
  if (created || created.error().Is(Code::kAlreadyExists)) return Requeue{};
  if (created.error().Is(Code::kNotFound) || IsNamespaceTerminating(created.error())) return Requeue{};
  return created.error().Wrap("create ServiceAccount");
}

}  // namespace keelson::controllers

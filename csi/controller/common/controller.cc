#include "csi/controller/common/controller.h"

#include <algorithm>

namespace keelson::csi::controller {

Reconciler::Reconciler(std::string name, Clock& clock, const RetryOptions& retry)
    : workers_(retry.workers), queue_(std::move(name), clock, retry.backoff) {}

void Reconciler::Run(std::stop_token stop) {
  client::RunWorkers(queue_, workers_, stop,
                     [this](const std::string& key, std::stop_token s) { return Reconcile(key, s); });
}

Controller::Controller(std::string name, const Environment& environment)
    : Reconciler(std::move(name), environment.clock, environment.retry), environment_(environment) {}

Result<Strings> ReadSecret(const client::RestClient& api, const corev1::SecretReference& reference) {
  Result<corev1::Secret> secret = api.Get<corev1::Secret>(reference.namespace_(), reference.name());
  if (!secret) {
    return secret.error().Wrap("error getting secret " + reference.name() + " in namespace " +
                               reference.namespace_());
  }
  Strings out;
  for (const auto& [key, value] : secret->data()) out[key] = value;
  return out;
}

bool HasFinalizer(const metav1::ObjectMeta& meta, const std::string& finalizer) {
  const auto& all = meta.finalizers();
  return std::find(all.begin(), all.end(), finalizer) != all.end();
}

bool DropFinalizer(metav1::ObjectMeta& meta, const std::string& finalizer) {
  auto& all = *meta.mutable_finalizers();
  const auto found = std::find(all.begin(), all.end(), finalizer);
  if (found == all.end()) return false;
  all.erase(found);
  return true;
}

}  // namespace keelson::csi::controller

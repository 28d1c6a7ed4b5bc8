#include "csi/controller/common/controller.h"

#include <algorithm>

namespace keelson::csi::controller {

Controller::Controller(std::string name, const Environment& environment)
    : environment_(environment), queue_(std::move(name), environment.clock, environment.retry.backoff) {}

void Controller::Run(std::stop_token stop) {
  client::RunWorkers(queue_, environment_.retry.workers, stop,
                     [this](const std::string& key, std::stop_token s) { return Reconcile(key, s); });
}

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

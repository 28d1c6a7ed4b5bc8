#include "controlplane/controllers/bootstraptokens/controllers.h"

#include <google/protobuf/util/message_differencer.h>

#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

constexpr char kMapNamespace[] = "kube-public", kMapName[] = "cluster-info";
constexpr char kKubeconfig[] = "kubeconfig", kSignaturePrefix[] = "jws-kubeconfig-";

}  // namespace

BootstrapSigner::BootstrapSigner(client::RestClient api, client::InformerFactory& informers,
                                 client::EventRecorder&, Clock& clock)
    : Controller("bootstrap_signer_queue", clock),
      api_(std::move(api)),
      maps_(informers.Get<corev1::ConfigMap>({.field_selector = std::string("metadata.name=") + kMapName},
                                             kMapNamespace)),
      tokens_(BootstrapTokens(informers)) {
  maps_.AddHandler([this](const client::Change<corev1::ConfigMap>& change) {
    if (change.new_object) queue().Add(kMapName);
  });
  tokens_.AddHandler([this](const auto&) { queue().Add(kMapName); });
}

Result<Requeue> BootstrapSigner::Reconcile(const std::string&, std::stop_token stop) {
  auto map = maps_.Get(kMapNamespace, kMapName);
  if (!map) return Requeue{};
  auto content = map->data().find(kKubeconfig);
  if (content == map->data().end()) return Requeue{};
  corev1::ConfigMap wanted = *map;
  auto& data = *wanted.mutable_data();
  for (const auto& [key, value] : map->data()) {
    if (key.starts_with(kSignaturePrefix)) data.erase(key);
  }
  const WallTime now = clock().Now();
  Requeue again;
  for (const auto& secret : tokens_.List()) {
    const std::optional<SigningToken> token = TokenForSigning(*secret, now);
    if (!token) continue;
    data[kSignaturePrefix + token->id] = DetachedSignature(content->second, *token);
    // Requeue at the expiration: the signature must go even if TokenCleaner does not run.
    const auto left = TokenLifeLeft(*secret, now);
    if (left && (!again.after || *left < *again.after)) again.after = left;
  }
  if (google::protobuf::util::MessageDifferencer::Equals(wanted, *map)) return again;
  auto stored = api_.With(stop).Update(wanted);
  if (!stored) return stored.error().Wrap("update cluster-info");
  return again;
}

TokenCleaner::TokenCleaner(client::RestClient api, client::InformerFactory& informers, client::EventRecorder&,
                           Clock& clock)
    : Controller("token_cleaner", clock), api_(std::move(api)), tokens_(BootstrapTokens(informers)) {
  tokens_.AddHandler([this](const client::Change<corev1::Secret>& change) {
    if (change.new_object) queue().Add(change.key);
  });
}

Result<Requeue> TokenCleaner::Reconcile(const std::string& key, std::stop_token stop) {
  auto secret = tokens_.Get(key);
  if (!secret) return Requeue{};
  const auto left = TokenLifeLeft(*secret, clock().Now());
  if (!left) return Requeue{};
  if (*left > left->zero()) return Requeue{*left};
  const metav1::ObjectMeta& meta = secret->metadata();
  const Result<> deleted =
      api_.With(stop).Delete<corev1::Secret>(meta.namespace_(), meta.name(), {.uid = meta.uid()});
  if (!deleted && !deleted.error().Is(Code::kNotFound)) return deleted.error().Wrap("delete expired token");
  return Requeue{};
}

}  // namespace keelson::controllers

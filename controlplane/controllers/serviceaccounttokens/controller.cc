#include "controlplane/controllers/serviceaccounttokens/controller.h"

#include <fmt/format.h>

#include "controlplane/controllers/common/ownership.h"
#include "lib/api/meta.h"
#include "lib/base/base64.h"
#include "lib/base/json_quote.h"

namespace keelson::controllers {
namespace {

constexpr char kType[] = "kubernetes.io/service-account-token";
constexpr char kByAccount[] = "account", kBySecret[] = "secret";
constexpr char kCa[] = "ca.crt", kNamespace[] = "namespace", kToken[] = "token";

std::string Annotation(const corev1::Secret& secret, const char* key) {
  auto it = secret.metadata().annotations().find(key);
  return it == secret.metadata().annotations().end() ? "" : it->second;
}

}  // namespace

client::Informer<corev1::Secret>& TokenSecrets(client::InformerFactory& informers) {
  return informers.Get<corev1::Secret>({.field_selector = std::string("type=") + kType});
}

std::string AccountOf(const corev1::Secret& secret) { return Annotation(secret, kAccountName); }

bool IsOf(const corev1::Secret& secret, const corev1::ServiceAccount& account) {
  const std::string uid = Annotation(secret, kAccountUid);
  return uid.empty() || account.metadata().uid() == uid;
}

Result<std::string> LegacyToken(const crypto::SigningKey& key, const corev1::ServiceAccount& account,
                                const std::string& secret) {
  const metav1::ObjectMeta& meta = account.metadata();
  const std::string header =
      fmt::format(R"({{"alg":{},"kid":{}}})", JsonQuoted(key.algorithm()), JsonQuoted(key.id()));
  constexpr std::string_view kClaim = "kubernetes.io/serviceaccount/";
  const std::string payload = fmt::format(
      R"({{"iss":"kubernetes/serviceaccount","{0}namespace":{1},"{0}secret.name":{2},"{0}service-account.name":{3},)"
      R"("{0}service-account.uid":{4},"sub":{5}}})",
      kClaim, JsonQuoted(meta.namespace_()), JsonQuoted(secret), JsonQuoted(meta.name()),
      JsonQuoted(meta.uid()), JsonQuoted("system:serviceaccount:" + meta.namespace_() + ":" + meta.name()));
  const std::string text =
      EncodeBase64(header, Base64::kRawUrl) + "." + EncodeBase64(payload, Base64::kRawUrl);
  KEELSON_ASSIGN_OR_RETURN(std::string signature, key.Sign(text));
  return text + "." + EncodeBase64(signature, Base64::kRawUrl);
}

ServiceAccountTokensController::ServiceAccountTokensController(client::RestClient api,
                                                               client::InformerFactory& informers,
                                                               client::EventRecorder&, Clock& clock,
                                                               crypto::SigningKey key,
                                                               std::string root_ca_pem)
    : Controller("serviceaccount_tokens_secret", clock),
      api_(std::move(api)),
      accounts_(informers.Get<corev1::ServiceAccount>()),
      secrets_(TokenSecrets(informers)),
      key_(std::move(key)),
      root_ca_pem_(std::move(root_ca_pem)) {
  secrets_.AddIndex(kByAccount, [](const corev1::Secret& secret) {
    return std::vector{api::KeyOf(secret.metadata().namespace_(), AccountOf(secret))};
  });
  accounts_.AddIndex(kBySecret, [](const corev1::ServiceAccount& account) {
    std::vector<std::string> keys;
    for (const corev1::ObjectReference& secret : account.secrets()) {
      keys.push_back(api::KeyOf(account.metadata().namespace_(), secret.name()));
    }
    return keys;
  });
  secrets_.AddHandler([this](const client::Change<corev1::Secret>& change) { queue().Add(change.key); });
  accounts_.AddHandler([this](const client::Change<corev1::ServiceAccount>& change) {
    const bool replaced = change.old_object && change.new_object &&
                          change.old_object->metadata().uid() != change.new_object->metadata().uid();
    if (change.new_object && !replaced) return;
    for (const auto& secret : secrets_.ByIndex(kByAccount, change.key)) queue().Add(api::KeyOf(*secret));
  });
}

Result<std::optional<corev1::ServiceAccount>> ServiceAccountTokensController::FindAccount(
    const corev1::Secret& secret, const client::RestClient& api) const {
  auto known = accounts_.Get(secret.metadata().namespace_(), AccountOf(secret));
  if (known && IsOf(secret, *known)) return std::optional(*known);
  // It may be too new for the store.
  auto live = api.Get<corev1::ServiceAccount>(secret.metadata().namespace_(), AccountOf(secret));
  if (live && IsOf(secret, *live)) return std::optional(*std::move(live));
  if (live || live.error().Is(Code::kNotFound)) return std::nullopt;
  return live.error();
}

Result<> ServiceAccountTokensController::Fill(const corev1::Secret& secret,
                                              const corev1::ServiceAccount& account,
                                              const client::RestClient& api) {
  corev1::Secret wanted = secret;
  auto& data = *wanted.mutable_data();
  bool changed = false;
  auto put = [&](const char* key, const std::string& value) {
    auto it = data.find(key);
    if (it != data.end() && it->second == value) return;
    data[key] = value;
    changed = true;
  };
  if (!root_ca_pem_.empty()) put(kCa, root_ca_pem_);
  if (data[kNamespace].empty()) put(kNamespace, secret.metadata().namespace_());
  if (data[kToken].empty()) {
    KEELSON_ASSIGN_OR_RETURN(std::string token, LegacyToken(key_, account, secret.metadata().name()));
    put(kToken, token);
  }
  // A manually written token is not bound to this ServiceAccount.
  if (!changed) return {};
  auto& annotations = *wanted.mutable_metadata()->mutable_annotations();
  annotations[kAccountName] = account.metadata().name();
  annotations[kAccountUid] = account.metadata().uid();
  auto stored = api.Update(wanted);
  if (!stored && !stored.error().Is(Code::kNotFound)) return stored.error();
  return {};
}

Result<> ServiceAccountTokensController::Unlist(const std::string& key, const client::RestClient& api) {
  const std::string name = api::SplitKey(key).second;
  for (const auto& account : accounts_.ByIndex(kBySecret, key)) {
    corev1::ServiceAccount changed = *account;
    auto& listed = *changed.mutable_secrets();
    for (int i = listed.size() - 1; i >= 0; --i) {
      if (listed[i].name() == name) listed.DeleteSubrange(i, 1);
    }
    auto stored = api.Update(changed);
    if (!stored && !stored.error().Is(Code::kNotFound)) return stored.error();
  }
  return {};
}

Result<Requeue> ServiceAccountTokensController::Reconcile(const std::string& key, std::stop_token stop) {
  const client::RestClient api = api_.With(stop);
  auto secret = secrets_.Get(key);
  if (!secret) {
    KEELSON_RETURN_IF_ERROR(Unlist(key, api));
    return Requeue{};
  }
  if (secret->metadata().has_deletion_timestamp() || AccountOf(*secret).empty()) return Requeue{};
  KEELSON_ASSIGN_OR_RETURN(std::optional<corev1::ServiceAccount> account, FindAccount(*secret, api));
  if (account) {
    KEELSON_RETURN_IF_ERROR(Fill(*secret, *account, api));
    return Requeue{};
  }
  const metav1::ObjectMeta& meta = secret->metadata();
  const Result<> deleted = api.Delete<corev1::Secret>(meta.namespace_(), meta.name(), {.uid = meta.uid()});
  if (!deleted && !deleted.error().Is(Code::kNotFound)) {
    return deleted.error().Wrap("delete token of no account");
  }
  return Requeue{};
}

}  // namespace keelson::controllers

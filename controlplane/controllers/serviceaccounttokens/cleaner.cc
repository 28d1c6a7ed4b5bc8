#include "controlplane/controllers/serviceaccounttokens/cleaner.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/controllers/common/ownership.h"
#include "lib/api/codec/text_forms.h"
#include "lib/api/meta.h"
#include "lib/base/json_quote.h"
#include "lib/base/log.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

constexpr char kKey[] = "all";
constexpr std::chrono::hours kEvery(24);
constexpr char kTracking[] = "kube-apiserver-legacy-service-account-token-tracking";

std::string DateOf(WallTime time) { return api::FormatTime(api::ToTime(time)).substr(0, 10); }

// YYYY-MM-DD: these strings compare like dates.
bool IsDate(const std::string& text) {
  return text.size() == 10 && api::ParseTime(text + "T00:00:00Z", false);
}

std::optional<std::string> LabelOf(const corev1::Secret& secret, const char* key) {
  auto it = secret.metadata().labels().find(key);
  if (it == secret.metadata().labels().end()) return std::nullopt;
  return it->second;
}

}  // namespace

LegacyTokenCleaner::LegacyTokenCleaner(client::RestClient api, client::InformerFactory& informers,
                                       client::EventRecorder&, Clock& clock, std::chrono::milliseconds period)
    : Controller("legacy_service_account_token_cleaner", clock),
      api_(std::move(api)),
      accounts_(informers.Get<corev1::ServiceAccount>()),
      secrets_(TokenSecrets(informers)),
      pods_(informers.Get<corev1::Pod>()),
      period_(period) {
  queue().Add(kKey);
}

bool LegacyTokenCleaner::IsMounted(const corev1::Secret& secret) const {
  for (const auto& pod : pods_.List()) {
    if (pod->metadata().namespace_() != secret.metadata().namespace_()) continue;
    const std::vector<std::string> names = k8s::ReferencedSecrets(pod->spec());
    if (std::find(names.begin(), names.end(), secret.metadata().name()) != names.end()) return true;
  }
  return false;
}

Result<> LegacyTokenCleaner::Retire(const corev1::Secret& secret, const std::string& limit,
                                    const client::RestClient& api) {
  const metav1::ObjectMeta& meta = secret.metadata();
  const std::string since = LabelOf(secret, kInvalidSince).value_or("");
  if (!IsDate(since)) {
    auto marked =
        api.Patch<corev1::Secret>(meta.namespace_(), meta.name(), client::PatchType::kMerge,
                                  fmt::format(R"({{"metadata":{{"uid":{},"labels":{{"{}":"{}"}}}}}})",
                                              JsonQuoted(meta.uid()), kInvalidSince, DateOf(clock().Now())));
    if (!marked) return marked.error();
    return {};
  }
  if (since >= limit) return {};
  return api.Delete<corev1::Secret>(meta.namespace_(), meta.name(),
                                    {.uid = meta.uid(), .resource_version = meta.resource_version()});
}

Result<Requeue> LegacyTokenCleaner::Reconcile(const std::string&, std::stop_token stop) {
  const client::RestClient api = api_.With(stop);
  const WallTime since_when = clock().Now() - period_;
  const std::string limit = DateOf(since_when);
  Result<corev1::ConfigMap> tracking = api.Get<corev1::ConfigMap>("kube-system", kTracking);
  if (!tracking && tracking.error().Is(Code::kNotFound)) return Requeue{kEvery};  // usage is not tracked
  if (!tracking) return tracking.error();
  auto since = tracking->data().find("since");
  // Usage has not been tracked long enough: a token without a date may have been used yesterday.
  if (since == tracking->data().end() || !IsDate(since->second) || since->second >= limit) {
    return Requeue{kEvery};
  }
  for (const auto& secret : secrets_.List()) {
    const metav1::ObjectMeta& meta = secret->metadata();
    if (meta.has_deletion_timestamp() || api::FromTime(meta.creation_timestamp()) >= since_when) continue;
    const std::optional<std::string> used = LabelOf(*secret, kLastUsed);
    if (used && (!IsDate(*used) || *used >= limit)) continue;
    auto account = accounts_.Get(meta.namespace_(), AccountOf(*secret));
    if (!account || !IsOf(*secret, *account)) continue;
    // Only Secrets that a ServiceAccount lists were auto-generated.
    const bool listed =
        std::any_of(account->secrets().begin(), account->secrets().end(),
                    [&](const corev1::ObjectReference& one) { return one.name() == meta.name(); });
    if (!listed || IsMounted(*secret)) continue;
    const Result<> retired = Retire(*secret, limit, api);
    if (!retired && !retired.error().Is(Code::kNotFound)) {
      log::Warn("Cannot retire a token",
                {{"namespace", meta.namespace_()}, {"secret", meta.name()}, {"err", retired.error()}});
    }
  }
  return Requeue{kEvery};
}

}  // namespace keelson::controllers

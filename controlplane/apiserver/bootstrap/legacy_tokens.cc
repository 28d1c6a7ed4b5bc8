// The date since when uses of legacy tokens are tracked: without it the cleaner could not tell an unused
// token from an untracked one.
#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "lib/api/codec/text_forms.h"

namespace keelson::apiserver {
namespace {

constexpr const char* kNamespace = "kube-system";
constexpr const char* kName = "kube-apiserver-legacy-service-account-token-tracking";
constexpr const char* kSince = "since";

// True for a valid date that is not in the future.
bool IsPast(const std::string& date, const std::string& today) {
  return date.size() == today.size() && date <= today &&
         api::ParseTime(date + "T00:00:00Z", false).has_value();
}

}  // namespace

Result<> EnsureLegacyTokenTracking(registry::Registry& registry, WallTime now, std::stop_token stop) {
  const std::string today = DateOf(now);
  const api::ResourceInfo& row = api::ResourceOf<corev1::ConfigMap>();
  Result<registry::ObjectPtr> found = registry.Get(row, kNamespace, kName, "", stop);
  if (!found && !found.error().Is(Code::kNotFound)) return found.error();
  if (!found) {
    corev1::ConfigMap made;
    made.mutable_metadata()->set_namespace_(kNamespace);
    made.mutable_metadata()->set_name(kName);
    (*made.mutable_data())[kSince] = today;
    return CreateIfAbsent(registry, made, stop);
  }
  const auto message = (*found)->Decode();
  const auto& data = static_cast<const corev1::ConfigMap&>(*message).data();
  if (auto since = data.find(kSince); since != data.end() && IsPast(since->second, today)) return {};
  auto updated = registry.Modify(
      row, kNamespace, kName,
      [&](api::Message& object) -> Result<> {
        (*static_cast<corev1::ConfigMap&>(object).mutable_data())[kSince] = today;
        return {};
      },
      BootstrapWrite(stop));
  if (!updated) return updated.error().Wrap(std::string("update ConfigMap ") + kName);
  return {};
}

Result<> MarkTokenUsed(registry::Registry& registry, std::string_view ns, std::string_view secret,
                       const std::string& date) {
  auto updated = registry.Modify(
      api::ResourceOf<corev1::Secret>(), ns, secret,
      [&](api::Message& object) -> Result<> {
        (*static_cast<corev1::Secret&>(object).mutable_metadata()->mutable_labels())[std::string(
            kTokenLastUsedLabel)] = date;
        return {};
      },
      BootstrapWrite({}));
  if (!updated) return updated.error();
  return {};
}

}  // namespace keelson::apiserver

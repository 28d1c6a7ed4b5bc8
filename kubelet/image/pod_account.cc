#include "kubelet/image/pod_account.h"

#include <boost/json.hpp>

#include "lib/base/log.h"
#include "lib/crypto/digest.h"

namespace keelson::kubelet {

std::string PodAccount::CacheKey(const TokenAttributes& attributes) const {
  if (name.empty()) return "";
  boost::json::object annotated;
  for (const auto& [key, value] : annotations) annotated[key] = value;
  boost::json::array key = {ns, name, uid, std::move(annotated)};
  if (attributes.kept_by_token) key.emplace_back(crypto::Sha256Hex(token));
  return boost::json::serialize(key);
}

std::optional<PodAccount> FindPodAccount(const TokenAttributes& attributes, const corev1::Pod& pod,
                                         const AccountSource& source) {
  PodAccount out{pod.metadata().namespace_(), pod.spec().service_account_name(), "", "", {}};
  if (out.name.empty()) {
    if (attributes.account_required) return std::nullopt;
    return out;
  }
  const log::Field where{"serviceAccount", out.ns + "/" + out.name};
  if (!source.get || !source.token) return std::nullopt;
  auto account = source.get(out.ns, out.name);
  if (!account) {
    log::Warn("Failed to get service account", {where, {"err", account.error()}});
    return std::nullopt;
  }
  const auto& annotations = (*account)->metadata().annotations();
  for (const std::string& key : attributes.required_annotations) {
    auto found = annotations.find(key);
    if (found == annotations.end()) {
      // How accounts opt in: no mistake.
      log::Debug("Credential provider is not asked: required annotation not found", {where, {"key", key}});
      return std::nullopt;
    }
    out.annotations[key] = found->second;
  }
  for (const std::string& key : attributes.optional_annotations) {
    if (auto found = annotations.find(key); found != annotations.end()) out.annotations[key] = found->second;
  }
  out.uid = (*account)->metadata().uid();
  auto token = source.token(pod, attributes.audience);
  if (!token) {
    log::Warn("Error getting service account token", {where, {"err", token.error()}});
    return std::nullopt;
  }
  out.token = std::move(*token);
  return out;
}

}  // namespace keelson::kubelet

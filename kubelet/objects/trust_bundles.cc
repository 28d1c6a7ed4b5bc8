#include "kubelet/objects/trust_bundles.h"

#include "kubelet/certificate/json_answer.h"

namespace keelson::kubelet {

namespace {

constexpr char kGroup[] = "/apis/certificates.k8s.io/";
constexpr char kResource[] = "clustertrustbundles";

TrustBundle BundleOf(const json::object& object) {
  const json::object& meta = Member(object, "metadata");
  const json::object& spec = Member(object, "spec");
  TrustBundle out{Text(meta, "name"), Text(spec, "signerName"), {}, Text(spec, "trustBundle")};
  for (const auto& [key, value] : Member(meta, "labels")) {
    if (value.is_string()) out.labels[std::string(key)] = std::string(value.get_string());
  }
  return out;
}

Result<json::object> Ask(const client::RestClient& api, const std::string& target) {
  client::ApiRequest request;
  request.target = kGroup + target;
  return AskJson(api.transport(), std::move(request));
}

}  // namespace

Result<std::string> TrustBundles::Version() {
  {
    MutexLock lock(mutex_);
    if (!version_.empty()) return version_;
  }
  for (const char* version : {"v1", "v1beta1", "v1alpha1"}) {
    auto list = Ask(api_, version);
    if (!list && list.error().Is(Code::kNotFound)) continue;
    if (!list) return list.error();
    bool served = false;
    ForEachObject(*list, "resources",
                  [&](const json::object& row) { served = served || Text(row, "name") == kResource; });
    if (!served) continue;
    MutexLock lock(mutex_);
    return version_ = version;
  }
  return std::string();
}

Result<std::vector<TrustBundle>> TrustBundles::Get(const std::string& name) {
  auto version = Version();
  if (!version) {
    return version.error().Wrap(
        "failed to ensure informer manager for ClusterTrustBundles: failed to determine which informer "
        "manager to choose");
  }
  if (version->empty()) {
    return Error(Code::kUnimplemented,
                 "ClusterTrustBundle projection is not supported in static kubelet mode");
  }
  KEELSON_ASSIGN_OR_RETURN(json::object object,
                           Ask(api_, *version + "/" + kResource + (name.empty() ? "" : "/" + name)));
  std::vector<TrustBundle> out;
  if (name.empty()) {
    ForEachObject(object, "items", [&](const json::object& item) { out.push_back(BundleOf(item)); });
  } else {
    out.push_back(BundleOf(object));
  }
  return out;
}

}  // namespace keelson::kubelet

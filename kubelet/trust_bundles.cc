#include "kubelet/trust_bundles.h"

#include <boost/json.hpp>

namespace keelson::kubelet {

namespace {

namespace json = boost::json;

constexpr char kGroup[] = "/apis/certificates.k8s.io/";
constexpr char kResource[] = "clustertrustbundles";
constexpr std::chrono::seconds kTimeout(30);

// An empty object where there is no such member.
const json::object& Member(const json::object& object, const char* name) {
  static const json::object kNone;
  const json::value* member = object.if_contains(name);
  return member && member->is_object() ? member->get_object() : kNone;
}

std::string Text(const json::object& object, const char* name) {
  const json::value* member = object.if_contains(name);
  return member && member->is_string() ? std::string(member->get_string()) : "";
}

TrustBundle BundleOf(const json::object& object) {
  const json::object& meta = Member(object, "metadata");
  const json::object& spec = Member(object, "spec");
  TrustBundle out{Text(meta, "name"), Text(spec, "signerName"), {}, Text(spec, "trustBundle")};
  for (const auto& [key, value] : Member(meta, "labels"))
    if (value.is_string()) out.labels[std::string(key)] = std::string(value.get_string());
  return out;
}

Result<json::object> ParseObject(const client::ApiResponse& response) {
  boost::system::error_code failed;
  json::value parsed = json::parse(response.body, failed);
  if (failed || !parsed.is_object())
    return Error(Code::kInternal, "the API server's answer about ClusterTrustBundles is no JSON object");
  return std::move(parsed.get_object());
}

// The Status in the body says why.
Error Refusal(const client::ApiResponse& response) {
  auto status = ParseObject(response);
  std::string message = status ? Text(*status, "message") : "";
  if (message.empty()) message = "the server answered " + std::to_string(response.status);
  return Error(CodeOf(response.status, status ? Text(*status, "reason") : ""), message);
}

}  // namespace

Result<client::ApiResponse> TrustBundles::Ask(const std::string& target) const {
  client::ApiRequest request;
  request.target = target;
  request.accept = "application/json";
  return api_.transport().Do(request, kTimeout, {});
}

Result<std::string> TrustBundles::Version() {
  {
    MutexLock lock(mutex_);
    if (!version_.empty()) return version_;
  }
  for (const char* version : {"v1", "v1beta1", "v1alpha1"}) {
    ASSIGN_OR_RETURN(client::ApiResponse answer, Ask(std::string(kGroup) + version));
    if (answer.status == 404) continue;
    if (answer.status != 200) return Refusal(answer);
    ASSIGN_OR_RETURN(json::object list, ParseObject(answer));
    const json::value* resources = list.if_contains("resources");
    if (!resources || !resources->is_array()) continue;
    for (const json::value& resource : resources->get_array()) {
      if (!resource.is_object() || Text(resource.get_object(), "name") != kResource) continue;
      MutexLock lock(mutex_);
      return version_ = version;
    }
  }
  return std::string();
}

Result<std::vector<TrustBundle>> TrustBundles::Get(const std::string& name) {
  auto version = Version();
  if (!version)
    return version.error().Wrap(
        "failed to ensure informer manager for ClusterTrustBundles: failed to determine which informer "
        "manager "
        "to choose");
  if (version->empty())
    return Error(Code::kUnimplemented,
                 "ClusterTrustBundle projection is not supported in static kubelet mode");
  ASSIGN_OR_RETURN(client::ApiResponse answer,
                   Ask(kGroup + *version + "/" + kResource + (name.empty() ? "" : "/" + name)));
  if (answer.status != 200) return Refusal(answer);
  ASSIGN_OR_RETURN(json::object object, ParseObject(answer));
  std::vector<TrustBundle> out;
  if (!name.empty()) return out.push_back(BundleOf(object)), out;
  if (const json::value* items = object.if_contains("items"); items && items->is_array())
    for (const json::value& item : items->get_array())
      if (item.is_object()) out.push_back(BundleOf(item.get_object()));
  return out;
}

}  // namespace keelson::kubelet

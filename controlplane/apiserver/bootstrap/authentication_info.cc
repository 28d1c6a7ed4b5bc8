// The ConfigMap kube-system/extension-apiserver-authentication: how extension API servers authenticate
// requests of this server. Written from the current files, so that it includes renewed CAs.
#include <boost/json.hpp>

#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "lib/base/file.h"

namespace keelson::apiserver {
namespace {

constexpr const char* kNamespace = "kube-system";
constexpr const char* kName = "extension-apiserver-authentication";

using Data = google::protobuf::Map<std::string, std::string>;

std::string JsonList(const std::vector<std::string>& items) {
  return boost::json::serialize(boost::json::value_from(items));
}

Result<Data> WantedData(const AuthenticationInfo& info) {
  Data data;
  if (!info.client_ca_file.empty()) {
    KEELSON_ASSIGN_OR_RETURN(data["client-ca-file"], ReadFile(info.client_ca_file));
  }
  const RequestHeaderOptions& proxy = info.request_header;
  if (proxy.client_ca_file.empty()) return data;
  KEELSON_ASSIGN_OR_RETURN(data["requestheader-client-ca-file"], ReadFile(proxy.client_ca_file));
  data["requestheader-allowed-names"] = JsonList(proxy.allowed_names);
  data["requestheader-username-headers"] = JsonList(proxy.username_headers);
  data["requestheader-uid-headers"] = JsonList(proxy.uid_headers);
  data["requestheader-group-headers"] = JsonList(proxy.group_headers);
  data["requestheader-extra-headers-prefix"] = JsonList(proxy.extra_prefixes);
  return data;
}

bool Has(const Data& have, const Data& wanted) {
  for (const auto& entry : wanted) {
    auto it = have.find(entry.first);
    if (it == have.end() || it->second != entry.second) return false;
  }
  return true;
}

}  // namespace

Result<> EnsureAuthenticationInfo(registry::Registry& registry, const AuthenticationInfo& info,
                                  std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(Data wanted, WantedData(info));
  if (wanted.empty()) return {};
  const api::ResourceInfo& row = api::ResourceOf<corev1::ConfigMap>();
  Result<registry::ObjectPtr> found = registry.Get(row, kNamespace, kName, "", stop);
  if (!found && !found.error().Is(Code::kNotFound)) return found.error();
  if (!found) {
    corev1::ConfigMap made;
    made.mutable_metadata()->set_namespace_(kNamespace);
    made.mutable_metadata()->set_name(kName);
    *made.mutable_data() = wanted;
    return CreateIfAbsent(registry, made, stop);
  }
  auto message = (*found)->Decode();
  if (Has(static_cast<const corev1::ConfigMap&>(*message).data(), wanted)) return {};
  auto updated = registry.Modify(
      row, kNamespace, kName,
      [&](api::Message& object) -> Result<> {
        Data& data = *static_cast<corev1::ConfigMap&>(object).mutable_data();
        for (const auto& entry : wanted) data[entry.first] = entry.second;
        return {};
      },
      BootstrapWrite(stop));
  if (!updated) return updated.error().Wrap(std::string("update ConfigMap ") + kName);
  return {};
}

}  // namespace keelson::apiserver

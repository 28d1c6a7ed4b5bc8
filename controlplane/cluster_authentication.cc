#include "controlplane/cluster_authentication.h"

#include <chrono>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/client/informer.h"
#include "lib/crypto/certificates.h"
#include "lib/k8s/text/pem.h"

namespace keelson::controlplane {
namespace {

constexpr const char *kNamespace = "kube-system", *kName = "extension-apiserver-authentication";

std::string ValueOf(const corev1::ConfigMap& map, const char* key) {
  const auto at = map.data().find(key);
  return at == map.data().end() ? "" : at->second;
}

Result<std::string> Bundle(const corev1::ConfigMap& map, const char* key) {
  std::string pem = ValueOf(map, key);
  std::string_view rest = pem;
  int count = 0;
  for (auto block = k8s::NextPemBlock(rest); block; block = k8s::NextPemBlock(rest), ++count) {
    if (block->type != "CERTIFICATE" || !k8s::IsCertificate(block->bytes)) {
      return Error(Code::kInvalid, fmt::format("{} has a block that is no certificate", key));
    }
  }
  if (count == 0 && !pem.empty()) return Error(Code::kInvalid, fmt::format("{} has no certificate", key));
  return pem;
}

// A JSON list of texts that are not empty. A missing key is an empty list.
Result<std::vector<std::string>> List(const corev1::ConfigMap& map, const char* key) {
  const std::string text = ValueOf(map, key);
  std::vector<std::string> out;
  if (text.empty()) return out;
  boost::system::error_code problem;
  const boost::json::value value = boost::json::parse(text, problem);
  if (problem || !value.is_array()) return Error(Code::kInvalid, fmt::format("{} is no JSON list", key));
  for (const boost::json::value& item : value.get_array()) {
    const std::string_view word =
        item.is_string() ? Trim(std::string_view(item.get_string()), " \t") : std::string_view();
    if (word.empty()) return Error(Code::kInvalid, fmt::format("{} has an empty item", key));
    out.emplace_back(word);
  }
  return out;
}

// A certificate of which no one has the key: TLS libraries want at least one.
Result<std::string> TrustsNothing() {
  KEELSON_ASSIGN_OR_RETURN(const std::string key, crypto::NewPrivateKey());
  return crypto::NewSelfSigned(key, {.common_name = "none"}, std::chrono::hours(1));
}

}  // namespace

Result<ClusterAuthentication> ReadClusterAuthentication(const corev1::ConfigMap& map) {
  ClusterAuthentication out;
  apiserver::RequestHeaderOptions& headers = out.request_header;
  KEELSON_ASSIGN_OR_RETURN(out.client_ca, Bundle(map, "client-ca-file"));
  KEELSON_ASSIGN_OR_RETURN(out.proxy_ca, Bundle(map, "requestheader-client-ca-file"));
  KEELSON_ASSIGN_OR_RETURN(headers.allowed_names, List(map, "requestheader-allowed-names"));
  KEELSON_ASSIGN_OR_RETURN(headers.username_headers, List(map, "requestheader-username-headers"));
  KEELSON_ASSIGN_OR_RETURN(headers.uid_headers, List(map, "requestheader-uid-headers"));
  KEELSON_ASSIGN_OR_RETURN(headers.group_headers, List(map, "requestheader-group-headers"));
  KEELSON_ASSIGN_OR_RETURN(headers.extra_prefixes, List(map, "requestheader-extra-headers-prefix"));
  return out;
}

AuthenticationLookup::AuthenticationLookup(client::RestClient api, MemoryFile client_ca, MemoryFile proxy_ca)
    : api_(std::move(api)),
      client_ca_(std::move(client_ca)),
      proxy_ca_(std::move(proxy_ca)),
      request_header_(std::make_shared<const apiserver::RequestHeaderOptions>()) {}

Result<std::unique_ptr<AuthenticationLookup>> AuthenticationLookup::Make(client::RestClient api) {
  KEELSON_ASSIGN_OR_RETURN(const std::string nothing, TrustsNothing());
  KEELSON_ASSIGN_OR_RETURN(MemoryFile client_ca, MemoryFile::Make("client CA", nothing));
  KEELSON_ASSIGN_OR_RETURN(MemoryFile proxy_ca, MemoryFile::Make("proxy CA", nothing));
  return std::unique_ptr<AuthenticationLookup>(
      new AuthenticationLookup(std::move(api), std::move(client_ca), std::move(proxy_ca)));
}

Result<> AuthenticationLookup::ReadOnce() {
  Result<corev1::ConfigMap> map = api_.Get<corev1::ConfigMap>(kNamespace, kName);
  if (!map && map.error().Is(Code::kNotFound)) return {};
  if (!map) return map.error();
  return Apply(*map);
}

void AuthenticationLookup::Follow(std::stop_token stop, const std::function<Result<>()>& reload) {
  client::Informer<corev1::ConfigMap> informer(api_, api::ResourceOf<corev1::ConfigMap>(),
                                               {.field_selector = fmt::format("metadata.name={}", kName)},
                                               kNamespace);
  informer.AddHandler([&](const client::Change<corev1::ConfigMap>& change) {
    if (!change.new_object) return;
    Result<> done = Apply(*change.new_object);
    if (done) done = reload();
    if (done) {
      log::Info("Took up how the cluster authenticates clients", {{"configmap", change.key}});
    } else {
      log::Error("Cannot take up how the cluster authenticates clients",
                 {{"configmap", change.key}, {"err", done.error()}});
    }
  });
  informer.Run(stop, [] {});
}

Result<> AuthenticationLookup::Apply(const corev1::ConfigMap& map) {
  KEELSON_ASSIGN_OR_RETURN(ClusterAuthentication read, ReadClusterAuthentication(map));
  if (!read.client_ca.empty()) {
    KEELSON_RETURN_IF_ERROR(client_ca_.Replace(read.client_ca));
  }
  if (read.proxy_ca.empty()) return {};
  // The names first: a new CA must not meet the old ones.
  read.request_header.client_ca_file = proxy_ca_.path();
  request_header_.store(std::make_shared<const apiserver::RequestHeaderOptions>(read.request_header));
  return proxy_ca_.Replace(read.proxy_ca);
}

}  // namespace keelson::controlplane

#include "controlplane/apiserver/connect/kubelet_client.h"

#include <fmt/format.h>

#include "controlplane/registry/registry.h"
#include "lib/api/types.h"

namespace keelson::apiserver {
namespace {

// More than the nodes of a large cluster, which are used repeatedly.
constexpr size_t kMaxClients = 8192;
constexpr int32_t kKubeletPort = 10250;

std::string HostOf(const corev1::Node& node, const std::vector<std::string>& types) {
  for (const std::string& type : types) {
    for (const corev1::NodeAddress& address : node.status().addresses()) {
      if (address.type() != type || address.address().empty()) continue;
      bool v6 = address.address().find(':') != std::string::npos;
      return v6 ? "[" + address.address() + "]" : address.address();
    }
  }
  return "";
}

}  // namespace

Result<std::shared_ptr<http::Client>> BackendClients::Get(
    const std::string& base_url, crypto::TlsClientOptions tls,
    std::optional<std::chrono::milliseconds> connect_timeout) {
  {
    MutexLock lock(mutex_);
    if (auto it = clients_.find(base_url); it != clients_.end()) return it->second;
  }
  http::ClientOptions options;
  options.base_url = base_url;
  options.tls = std::move(tls);
  if (connect_timeout) options.connect_timeout = *connect_timeout;
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<http::Client> made, http::Client::Create(std::move(options)));
  std::shared_ptr<http::Client> client = std::move(made);
  MutexLock lock(mutex_);
  if (clients_.size() >= kMaxClients) clients_.clear();
  return clients_.emplace(base_url, std::move(client)).first->second;
}

Result<std::shared_ptr<http::Client>> BackendClients::Kubelet(std::string_view name) {
  const api::ResourceInfo& nodes = api::ResourceOf<corev1::Node>();
  storage::ObjectPtr object = store_.Peek(nodes, name);
  if (!object) return registry::NotFoundError(nodes, name);
  auto node = std::static_pointer_cast<const corev1::Node>(object->Decode());
  std::string host = HostOf(*node, options_.kubelet_address_types);
  if (host.empty()) {
    return Error(Code::kUnavailable, fmt::format("no preferred addresses found for node \"{}\"", name));
  }
  int32_t port = node->status().daemon_endpoints().kubelet_endpoint().port();
  crypto::TlsClientOptions tls;
  tls.ca_pem = options_.kubelet_ca_pem;
  tls.certificate_pem = options_.kubelet_certificate_pem;
  tls.key_pem = options_.kubelet_key_pem;
  tls.insecure_skip_verify = options_.kubelet_ca_pem.empty();
  return Get(fmt::format("https://{}:{}", host, port == 0 ? kKubeletPort : port), std::move(tls),
             options_.connect_timeout);
}

Result<std::shared_ptr<http::Client>> BackendClients::Plain(const std::string& base_url) {
  crypto::TlsClientOptions tls;
  tls.insecure_skip_verify = true;
  return Get(base_url, std::move(tls));
}

}  // namespace keelson::apiserver

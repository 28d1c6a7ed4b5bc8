#include "controlplane/apiserver/peers/peer_clients.h"

namespace keelson::apiserver {
namespace {

constexpr size_t kMaxAddresses = 64;
constexpr std::chrono::seconds kConnectTimeout{5};
// All serving certificates of API servers have this name, whatever their addresses are.
constexpr const char* kServerName = "kubernetes.default.svc";

}  // namespace

Result<std::shared_ptr<http::Client>> PeerClients::At(const std::string& address) {
  MutexLock lock(mutex_);
  if (auto found = clients_.find(address); found != clients_.end()) return found->second;
  http::ClientOptions options;
  options.base_url = "https://" + address;
  options.connect_timeout = kConnectTimeout;
  options.tls.ca_pem = ca_pem_;
  options.tls.certificate_pem = certificate_.certificate_pem;
  options.tls.key_pem = certificate_.key_pem;
  options.tls.server_name = kServerName;
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<http::Client> client, http::Client::Create(std::move(options)));
  if (clients_.size() >= kMaxAddresses) clients_.clear();
  clients_[address] = client;
  return client;
}

void PeerClients::Forget(const std::string& address) {
  std::shared_ptr<http::Client> old;
  MutexLock lock(mutex_);
  if (auto found = clients_.find(address); found != clients_.end()) {
    old = std::move(found->second);
    clients_.erase(found);
  }
}

void PeerClients::SetCertificate(ProxyCertificate certificate) {
  decltype(clients_) old;
  MutexLock lock(mutex_);
  certificate_ = std::move(certificate);
  old.swap(clients_);
}

}  // namespace keelson::apiserver

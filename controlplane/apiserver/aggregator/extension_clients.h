// HTTP clients for extension API servers, and the certificate that shows them who is asking.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/aggregator/api_services.h"
#include "controlplane/apiserver/request/user.h"
#include "controlplane/apiserver/webhook/service_resolver.h"
#include "lib/base/mutex.h"
#include "lib/http/client/client.h"

namespace keelson::apiserver {

// Of --proxy-client-cert-file and --proxy-client-key-file (PEM); empty: none, and extension servers refuse the users
// that this server names.
struct ProxyCertificate {
  std::string certificate_pem, key_pem;
};

class ExtensionClients {  // thread safe
 public:
  // `services` must outlive this.
  ExtensionClients(const ServiceResolver& services, ProxyCertificate certificate)
      : services_(services), certificate_(std::move(certificate)) {}

  struct Target {
    std::shared_ptr<http::Client> client;
    std::string address;  // host:port
  };
  // A client for a ready endpoint of the APIService's Service, with the trust that the APIService demands.
  // kNotFound, kUnavailable: as ServiceResolver::Resolve(); kInternal: the CA bundle or the certificate is no good.
  Result<Target> For(const ApiServiceEntry& service);
  // The same without a look at the server's certificate: for availability, which says nothing of the answer.
  Result<Target> ForProbe(const ApiServiceEntry& service);
  // Later requests to the address get a new connection; those under way go on.
  void Forget(const std::string& address);
  // Applies to later connections.
  void SetCertificate(ProxyCertificate certificate);

 private:
  Result<Target> Make(const ApiServiceEntry& service, bool verify, bool keep);

  const ServiceResolver& services_;
  Mutex mutex_;
  ProxyCertificate certificate_ KEELSON_GUARDED_BY(mutex_);
  // By address, and then by name to verify and CAs.
  std::map<std::string, std::map<std::string, std::shared_ptr<http::Client>>> clients_
      KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, std::string> last_address_ KEELSON_GUARDED_BY(mutex_);  // by Service
};

// ---- the headers of a front proxy ----

// Whether a header of a client's request is this server's to set or to hear, so that it must not reach an extension
// server: credentials, impersonation, X-Remote-*.
bool IsIdentityHeader(std::string_view name);
// X-Remote-User, -Uid, -Group and -Extra-KEY. kInvalid when a value cannot stand in a header.
Result<http::Headers> IdentityHeaders(const User& user);
// The user of this server's own requests: the extension server must let it see discovery.
const User& AggregatorUser();

}  // namespace keelson::apiserver

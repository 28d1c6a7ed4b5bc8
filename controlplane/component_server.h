// The endpoints of a role without an API server in its process: /healthz, /livez, /readyz, /metrics,
// /metrics/slis, /configz, /flagz, /statusz, over TLS. Health is public; the others need permission from the
// API server.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/authn/request_header.h"
#include "controlplane/options/options.h"
#include "lib/client/delegated_auth.h"
#include "lib/component/health_report.h"
#include "lib/http/server/server.h"

namespace keelson::controlplane {

struct ComponentPages {
  std::string component;  // kube-controller-manager
  std::string configz;    // JSON
  using Check = component::NamedCheck;
  std::vector<Check> checks;  // for /healthz
  std::vector<std::string> flags;
  bool statusz = true, flagz = true;      // serve these pages
  std::vector<std::string> always_allow;  // paths without authorization; "/x/*" matches all below
  std::function<apiserver::RequestHeaderOptions()> request_header;  // which proxies name users; null: none
  std::function<std::string()> resources;  // /metrics/resources in Prometheus format; null: not served
};

// `auth` must outlive the handler.
http::Handler MakeComponentHandler(ComponentPages pages, client::DelegatedAuth& auth);

// Listens on --bind-address and --secure-port, with the certificate of --tls-cert-file or a self-signed one
// in memory. Clients' certificates are of --client-ca-file, proxies' of --requestheader-client-ca-file.
Result<std::unique_ptr<http::Server>> ListenForComponent(const Options& options, http::Handler handler);

}  // namespace keelson::controlplane

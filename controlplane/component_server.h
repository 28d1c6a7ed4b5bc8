// The pages of a role that runs without an API server in its process: /healthz, /livez, /readyz, /metrics,
// /metrics/slis, /configz, /flagz, /statusz, over TLS. Health is for everybody; the rest for whom the API
// server allows it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/options/options.h"
#include "lib/client/delegated_auth.h"
#include "lib/component/health_report.h"
#include "lib/http/server/server.h"

namespace keelson::controlplane {

struct ComponentPages {
  std::string component;  // kube-controller-manager
  std::string configz;    // JSON
  using Check = k8s::NamedCheck;
  std::vector<Check> checks;  // of /healthz
  std::vector<std::string> flags;
  bool statusz = true, flagz = true;       // the pages of these names
  std::vector<std::string> always_allow;   // paths that need no permission; "/x/*" all below
  std::function<std::string()> resources;  // /metrics/resources in Prometheus' form; null: there is none
};

// `auth` outlives the handler.
http::Handler MakeComponentHandler(ComponentPages pages, client::DelegatedAuth& auth);

// Listens where --bind-address and --secure-port say, with the certificate of --tls-cert-file, or one of its
// own that lives in memory.
Result<std::unique_ptr<http::Server>> ListenForComponent(const Options& options, http::Handler handler);

}  // namespace keelson::controlplane

// The kubelet's HTTPS API: /pods, /containerLogs, /exec, /attach, /portForward, /run, /metrics, ...
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "kubelet/server/backend.h"
#include "lib/client/rest.h"
#include "lib/http/server/server.h"

namespace keelson::kubelet::server {

struct KubeletServerOptions {
  std::string node_name;
  bool debugging_handlers = true;  // logs, exec, attach, port-forward, run
  bool system_log_handler = true;  // /logs/
  bool system_log_query = false;   // its ?query=
  std::string log_directory = "/var/log";
  bool profiling = true;    // /debug/pprof/
  bool debug_flags = true;  // /debug/flags/v
  bool statusz = true, flagz = true;
  std::map<std::string, std::string> flags;  // of /flagz: name to value
  bool anonymous = false;                    // requests without credentials are system:anonymous, else 401
  bool webhook_authentication = true;        // bearer tokens by TokenReview
  bool webhook_authorization = true;  // SubjectAccessReview; false: all authenticated users are allowed
  std::chrono::milliseconds authentication_ttl{std::chrono::minutes(2)};
  std::chrono::milliseconds authorized_ttl{std::chrono::minutes(5)},
      unauthorized_ttl{std::chrono::seconds(30)};
};

// The handlers for http::Server. Authentication: client certificates that the server has verified, or bearer tokens by
// TokenReview. Authorization of every request: SubjectAccessReview for this node, resource nodes, subresource stats,
// metrics, log, pods, healthz, configz, statusz or proxy, depending on the path.
class KubeletServer {
 public:
  KubeletServer(KubeletServerOptions options, KubeletBackend& backend, client::RestClient api);
  ~KubeletServer();  // ends streaming responses
  http::Handler handler();
  // For readOnlyPort, without authentication: health, pods, statistics and metrics.
  http::Handler read_only_handler();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace keelson::kubelet::server

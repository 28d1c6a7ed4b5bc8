// Requests and responses of httpGet handlers. Pure.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "kubelet/probe/handler.h"
#include "lib/http/message.h"

namespace keelson::kubelet {

constexpr char kProbeAgent[] = "kube-probe/1.36";

struct ProbeUrl {
  bool tls = false;
  std::string host;  // without brackets
  int port = 80;
  std::string target = "/";  // path and query

  std::string Authority() const;  // [::1]:8080
  std::string Base() const;       // http://[::1]:8080
  std::string ToString() const { return Base() + target; }
};

// The number of the port, or of the container's port of that name.
Result<int32_t> ResolvePort(const intstr::IntOrString& port, const HandlerTarget& target);
Result<ProbeUrl> UrlOf(const corev1::HTTPGetAction& action, const HandlerTarget& target);

// The user's headers replace default ones of the same name; an empty value removes the default.
http::Headers HeadersOf(const corev1::HTTPGetAction& action, const std::string& agent);
// The request in HTTP/1.1, with Connection: close.
std::string RequestText(const ProbeUrl& url, const http::Headers& headers);

// The URL of a redirect to follow (same host only, at most ten), or the outcome of the probe.
std::variant<ProbeUrl, ProbeOutcome> Judge(const ProbeUrl& url, int redirects, int status,
                                           const std::string& location, const std::string& body);

// The outcome of a request that got no response.
ProbeOutcome FailedGet(const ProbeUrl& url, const Error& error);

}  // namespace keelson::kubelet

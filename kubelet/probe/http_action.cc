#include "kubelet/probe/http_action.h"

#include "lib/base/text.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

constexpr int kMaxRedirects = 10;

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// RFC 3986 5.2, as far as http URLs of servers go; empty: not one.
std::optional<ProbeUrl> Resolve(const ProbeUrl& base, std::string_view reference) {
  ProbeUrl url = base;
  reference = reference.substr(0, reference.find('#'));
  for (bool tls : {false, true}) {
    const std::string_view scheme = tls ? "https:" : "http:";
    if (!EqualsIgnoreCase(reference.substr(0, scheme.size()), scheme)) continue;
    url.tls = tls;
    reference.remove_prefix(scheme.size());
    if (reference.substr(0, 2) != "//") return std::nullopt;
    break;
  }
  if (reference.substr(0, 2) == "//") {
    std::string_view authority = reference.substr(2, reference.find_first_of("/?", 2) - 2);
    reference.remove_prefix(2 + authority.size());
    if (const size_t at = authority.rfind('@'); at != std::string_view::npos) authority.remove_prefix(at + 1);
    const size_t end = authority.starts_with('[') ? authority.find(']') : authority.find(':');
    if (authority.starts_with('[') && end == std::string_view::npos) return std::nullopt;
    const size_t colon = authority.find(':', authority.starts_with('[') ? end : 0);
    url.host = authority.starts_with('[') ? authority.substr(1, end - 1) : authority.substr(0, colon);
    url.port = url.tls ? 443 : 80;
    if (colon != std::string_view::npos) {
      url.port = std::atoi(std::string(authority.substr(colon + 1)).c_str());
    }
    if (url.port <= 0 || url.port > 65535) return std::nullopt;
    url.target = "/";
  }
  const std::string path = url.target.substr(0, url.target.find('?'));
  if (reference.starts_with('/')) {
    url.target = reference;
  } else if (reference.starts_with('?')) {
    url.target = path + std::string(reference);
  } else if (!reference.empty()) {
    url.target = path.substr(0, path.rfind('/') + 1) + std::string(reference);
  }
  return url;
}

}  // namespace

std::string ProbeUrl::Authority() const {
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + std::to_string(port);
}

std::string ProbeUrl::Base() const { return (tls ? "https://" : "http://") + Authority(); }

Result<int32_t> ResolvePort(const intstr::IntOrString& port, const HandlerTarget& target) {
  if (!k8s::IsString(port)) return port.int_val();
  const corev1::Container* container = k8s::FindContainer(target.spec, target.container);
  if (container) {
    for (const auto& item : container->ports()) {
      if (item.name() == port.str_val()) return item.container_port();
    }
  }
  char* end = nullptr;
  long number = std::strtol(port.str_val().c_str(), &end, 10);
  if (end && *end == '\0' && number > 0 && number < 65536) return static_cast<int32_t>(number);
  return Error(Code::kInvalid, "couldn't find port: " + port.str_val());
}

Result<ProbeUrl> UrlOf(const corev1::HTTPGetAction& action, const HandlerTarget& target) {
  ProbeUrl url;
  KEELSON_ASSIGN_OR_RETURN(url.port, ResolvePort(action.port(), target));
  url.tls = EqualsIgnoreCase(action.scheme(), "HTTPS");
  url.host = action.host().empty() ? target.pod_ip : action.host();
  url.target = action.path().starts_with('/') ? action.path() : "/" + action.path();
  return url;
}

http::Headers HeadersOf(const corev1::HTTPGetAction& action, const std::string& agent) {
  http::Headers headers;
  for (const auto& header : action.http_headers()) headers.Add(header.name(), header.value());
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>("User-Agent", agent), {"Accept", "*/*"}}) {
    if (!headers.Has(name)) {
      headers.Add(name, value);
    } else if (headers.Get(name).empty()) {
      headers.Remove(name);
    }
  }
  headers.Set("Connection", "close");
  return headers;
}

std::string RequestText(const ProbeUrl& url, const http::Headers& headers) {
  std::string text = "GET " + url.target + " HTTP/1.1\r\n";
  if (!headers.Has("Host")) text += "Host: " + url.Authority() + "\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  return text + "\r\n";
}

std::variant<ProbeUrl, ProbeOutcome> Judge(const ProbeUrl& url, int redirects, int status,
                                           const std::string& location, const std::string& body) {
  if (IsRedirect(status) && !location.empty()) {
    auto next = Resolve(url, location);
    if (!next) {
      return ProbeOutcome{ProbeOutcome::kFailure, "failed to parse Location header \"" + location + "\""};
    }
    if (next->host == url.host) {
      if (redirects < kMaxRedirects) return *next;
      return ProbeOutcome{ProbeOutcome::kFailure,
                          "Get \"" + next->ToString() + "\": stopped after 10 redirects"};
    }
  }
  if (status >= 200 && status < 300) return ProbeOutcome{ProbeOutcome::kSuccess, body};
  if (status >= 300 && status < 400) {
    return ProbeOutcome{ProbeOutcome::kWarning, "Probe terminated redirects, Response body: " + body};
  }
  return ProbeOutcome{ProbeOutcome::kFailure, "HTTP probe failed with statuscode: " + std::to_string(status)};
}

ProbeOutcome FailedGet(const ProbeUrl& url, const Error& error) {
  return {ProbeOutcome::kFailure, "Get \"" + url.ToString() + "\": " + error.message()};
}

}  // namespace keelson::kubelet

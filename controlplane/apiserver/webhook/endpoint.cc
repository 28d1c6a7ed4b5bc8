#include "controlplane/apiserver/webhook/endpoint.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace keelson::apiserver::webhook {
namespace {

// Both groups spell the fields alike.
template <typename Config>
Endpoint FromConfig(const Config& config) {
  Endpoint endpoint;
  endpoint.ca_bundle = config.ca_bundle();
  if (config.has_service()) {
    const auto& service = config.service();
    endpoint.is_service = true;
    endpoint.service_ns = service.namespace_();
    endpoint.service_name = service.name();
    if (service.has_port()) endpoint.service_port = service.port();
    endpoint.host = fmt::format("{}.{}.svc:{}", service.name(), service.namespace_(), endpoint.service_port);
    endpoint.path = service.path();
  } else {
    std::string_view rest = config.url();
    if (const size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
      rest.remove_prefix(scheme + 3);
    }
    const size_t slash = std::min(rest.find('/'), rest.size());
    endpoint.host = rest.substr(0, slash);
    endpoint.path = rest.substr(slash);
  }
  if (!endpoint.path.starts_with('/')) endpoint.path.insert(0, "/");
  return endpoint;
}

}  // namespace

Endpoint EndpointOf(const api::admissionregistration::v1::WebhookClientConfig& config) {
  return FromConfig(config);
}
Endpoint EndpointOf(const api::apiextensions::v1::WebhookClientConfig& config) { return FromConfig(config); }

}  // namespace keelson::apiserver::webhook

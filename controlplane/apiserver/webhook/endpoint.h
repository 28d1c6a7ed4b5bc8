// Where a webhook listens.
#pragma once

#include <cstdint>
#include <string>

#include "lib/api/proto/admissionregistration_v1.pb.h"
#include "lib/api/proto/apiextensions_v1.pb.h"

namespace keelson::apiserver::webhook {

struct Endpoint {
  bool is_service = false;
  std::string service_ns, service_name;
  int32_t service_port = 443;
  std::string host;       // "example.com:8443" of a URL, "NAME.NAMESPACE.svc:443" of a Service
  std::string path;       // begins with '/'
  std::string ca_bundle;  // PEM; empty: the system's CAs
  std::string url() const { return "https://" + host + path; }
};

Endpoint EndpointOf(const api::admissionregistration::v1::WebhookClientConfig& config);
Endpoint EndpointOf(const api::apiextensions::v1::WebhookClientConfig& config);

}  // namespace keelson::apiserver::webhook

// What the API server has about a Service and what answers behind it.
#pragma once

#include <string>
#include <vector>

#include "ctl/why/events.h"
#include "lib/api/proto/networking_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/error.h"
#include "lib/client/rest.h"

namespace keelson::ctl {

namespace networkingv1 = api::networking::v1;

struct ServiceHealthView {
  corev1::Service service;
  std::vector<discoveryv1::EndpointSlice> slices;     // of the Service
  std::vector<corev1::Pod> pods;                      // of its namespace, without those that are over
  std::vector<networkingv1::NetworkPolicy> policies;  // of its namespace
  std::vector<std::string> nodes;                     // that are Ready
  bool has_dns = false;                               // the cluster has a Service kube-system/kube-dns
  Events events;                                      // of the Service, the oldest first

  std::string Name() const;  // NAMESPACE/NAME
  std::string Kubectl(const std::string& words) const;
  std::vector<const corev1::Pod*> Selected() const;  // pods that the selector matches
};

Result<ServiceHealthView> ReadServiceHealth(const client::RestClient& api, const std::string& ns,
                                            const std::string& name);

}  // namespace keelson::ctl

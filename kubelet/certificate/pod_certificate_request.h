// Creates and reads PodCertificateRequests (certificates.k8s.io/v1beta1).
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/client/rest.h"

namespace keelson::kubelet {

struct CreatedRequest {
  std::string name;
  WallTime created{};
};

struct RequestState {
  enum class Outcome { kPending, kDenied, kFailed, kIssued };
  Outcome outcome = Outcome::kPending;
  std::string reason, message;  // why it was denied or failed
  std::string chain;            // PEM, the issued certificates
  WallTime begin_refresh_at{}, not_after{};
};

class PodCertificateRequests {  // thread safe
 public:
  PodCertificateRequests(client::RestClient api, std::string node_name)
      : api_(std::move(api)), node_name_(std::move(node_name)) {}

  // Creates a request for the pod's service account and this node. `node_uid`: of the Node object.
  Result<CreatedRequest> Create(const corev1::Pod& pod, const corev1::PodCertificateProjection& source,
                                const std::string& node_uid, const std::string& key_pem) const;
  Result<RequestState> Get(const std::string& ns, const std::string& name) const;
  // Calls `changed` with the UIDs of this node's pods whose requests are added or changed, until the stream ends.
  Result<> Watch(const std::function<void(const std::string& uid)>& changed, std::stop_token stop) const;

 private:
  const client::RestClient api_;
  const std::string node_name_;
};

}  // namespace keelson::kubelet

// Certificates of podCertificate projections: requested once, and refreshed when the signer says so. Not kept over a
// restart: all are requested again.
//
//   initial --> waiting --> fresh <--> refreshing       fresh and refreshing have a valid bundle
//                  |                       |
//                  +---> denied, failed <--+            final
//
// Each Get() makes at most one step.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "kubelet/certificate/pod_certificate_request.h"
#include "kubelet/container/objects.h"

namespace keelson::kubelet {

class PodCertificates {  // thread safe; calls for one pod come one at a time
 public:
  struct Dependencies {
    client::RestClient api;
    std::string node_name;
    std::function<std::string()> node_uid;  // empty: not known yet
    std::function<void(const corev1::Pod& pod, const std::string& reason, const std::string& message)> warn;
    // Spreads the requests of nodes that started together.
    std::function<std::chrono::nanoseconds()> jitter = UpToFiveMinutes;
  };
  PodCertificates(Dependencies deps, Clock& clock);
  ~PodCertificates();

  // As ObjectSource::GetCredentials.
  Result<CredentialBundle> Get(const corev1::Pod& pod, const corev1::Volume& volume, int index);
  void ForgetPod(const std::string& uid);
  // Calls `changed` for pods whose certificates may have changed, until `stop`.
  void Watch(const std::function<void(const std::string& uid)>& changed, std::stop_token stop) const;

  static std::chrono::nanoseconds UpToFiveMinutes();

 private:
  struct Record;
  struct Table;  // also read by /metrics; outlives this object
  struct Asked;
  Result<> Step(const Asked& asked, Record& record);
  Result<> Request(const Asked& asked, Record& record);
  Result<> Look(const Asked& asked, Record& record);
  void TellLateness(const corev1::Pod& pod, Record& record) const;

  const Dependencies deps_;
  const PodCertificateRequests requests_;
  Clock& clock_;
  std::shared_ptr<Table> table_;
};

}  // namespace keelson::kubelet

// The certificate manager: requests a certificate, and rotates it when 70 to 90 % of its lifetime are over or when it
// has to name other hosts.
//
//   no certificate ---------------------------+
//        ^                                    v
//   loaded: wait for rotation time --> request, wait for issue --> store, call `changed` --> wait ...
//                                        |            ^
//                                        +-- failed --+  after 2, 4, 8, 16, then every 32 seconds
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "kubelet/certificate/certificate_request.h"
#include "kubelet/certificate/certificate_store.h"
#include "lib/base/clock.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

class CertificateManager {
 public:
  // kClient and kServing have different metrics. GetTemplate returns what to request; nullopt: not known yet.
  enum class Purpose { kClient, kServing };
  using GetTemplate = std::function<std::optional<CertificateTemplate>()>;

  CertificateManager(client::RestClient api, CertificateStore store, Purpose purpose, GetTemplate wanted,
                     std::function<void()> changed, Clock& clock = Clock::Real());

  // Until `stop`. An error: the client certificate has expired, and the API server rejects it: only a restart with the
  // bootstrap kubeconfig helps.
  Result<> Run(std::stop_token stop);

 private:
  struct Numbers;  // for /metrics; outlives this object
  std::optional<CertificateTemplate> Due() const;
  std::chrono::nanoseconds UntilNextLook() const;
  Result<> Rotate(const CertificateTemplate& wanted, std::stop_token stop);
  Result<> Failed(const Error& error);
  void Take(crypto::CertificateInfo certificate);

  const client::RestClient api_;
  const CertificateStore store_;
  const Purpose purpose_;
  const GetTemplate get_template_;
  const std::function<void()> changed_;
  Clock& clock_;
  // Run()'s own.
  std::optional<crypto::CertificateInfo> current_;
  WallTime rotation_{};
  int failures_ = 0;
  std::shared_ptr<Numbers> numbers_;
};

}  // namespace keelson::kubelet

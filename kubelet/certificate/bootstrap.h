// TLS bootstrapping: gets the kubelet's client certificate with a bootstrap kubeconfig.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "lib/base/clock.h"
#include "lib/client/transport.h"

namespace keelson::kubelet {

struct BootstrapOptions {
  std::string kubeconfig;            // kept if its credentials are valid, else written
  std::string bootstrap_kubeconfig;  // with the credentials to request a certificate
  std::string cert_dir;
  std::string node_name;
};
using Connect = std::function<Result<std::shared_ptr<client::Transport>>(const client::RestConfig& config)>;

// Blocks until `kubeconfig` can be used: at once, or when a certificate has been issued (an hour at most). The key is
// kept in `cert_dir` meanwhile, so that a restarted kubelet waits for the same request.
Result<> Bootstrap(const BootstrapOptions& options, const Connect& connect, std::stop_token stop,
                   Clock& clock = Clock::Real());

// Whether `kubeconfig` has credentials that have not expired.
bool HasUsableCredentials(const std::string& kubeconfig, WallTime now);

}  // namespace keelson::kubelet

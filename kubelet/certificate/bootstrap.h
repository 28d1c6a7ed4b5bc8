// How a kubelet that knows no more than a bootstrap kubeconfig comes by credentials of its own.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "lib/base/clock.h"
#include "lib/client/transport.h"

namespace keelson::kubelet {

struct BootstrapOptions {
  std::string kubeconfig;            // used if it has credentials that have not expired, else written
  std::string bootstrap_kubeconfig;  // who may ask for a certificate
  std::string cert_dir;
  std::string node_name;
};
using Connect = std::function<Result<std::shared_ptr<client::Transport>>(const client::RestConfig& config)>;

// Returns when `kubeconfig` can be used: at once, or when a certificate has been issued (an hour at most).
// The key is kept in `cert_dir` meanwhile, so that a kubelet that is started anew waits for the same request.
Result<> Bootstrap(const BootstrapOptions& options, const Connect& connect, std::stop_token stop,
                   Clock& clock = Clock::Real());

// Whether the credentials in `kubeconfig` can be used: a certificate that has expired cannot.
bool HasUsableCredentials(const std::string& kubeconfig, WallTime now);

}  // namespace keelson::kubelet

// Kubeconfigs (client-go's v1.Config) as kubeadm writes them: one cluster, one user, one context.
#pragma once

#include <string>
#include <string_view>

#include "ctl/pki/certificates.h"

namespace keelson::ctl {

struct Kubeconfig {
  std::string server;
  std::string ca_pem;
  std::string cluster = "kubernetes", user;
  // One of these; none: a kubeconfig that names a cluster alone.
  std::string certificate_pem, key_pem;
  std::string certificate_file;  // has the key too
  std::string token;
};

// With sorted keys, as client-go writes it.
std::string KubeconfigText(const Kubeconfig& config);
// The cluster and the user of the current context. Without a current context the first cluster, and no user: that is
// the form of cluster-info. kBadRequest: no kubeconfig, or no cluster.
Result<Kubeconfig> ParseKubeconfig(std::string_view text);

// Writes the kubeconfig of the plan, or keeps the present one if CA and server are right, in kubeadm's words.
Result<> EnsureKubeconfig(const CertificateStore& store, const KubeconfigPlan& plan,
                          const std::string& cluster, std::chrono::seconds life);

}  // namespace keelson::ctl

// The certificates of a cluster, as kubeadm names and makes them. Pure.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/config/documents.h"
#include "lib/base/error.h"
#include "lib/crypto/certificates.h"

namespace keelson::ctl {

struct CertificatePlan {
  std::string name;       // apiserver, etcd/peer: files NAME.crt and NAME.key in the certificates' directory
  std::string authority;  // the name of the one that signs; empty: it is an authority
  crypto::CertificateSubject subject;
  std::vector<std::string> usages;  // Kubernetes' names
  std::chrono::seconds life{0};
};

// A kubeconfig with a client certificate inside.
struct KubeconfigPlan {
  std::string name;  // admin
  std::string file;  // /etc/kubernetes/admin.conf
  std::string server;
  crypto::CertificateSubject subject;
};

// In kubeadm's order: an authority before what it signs. ServiceAccounts' keys (sa) are no certificate. etcd's are among
// them where others can join it (stacks_etcd()); else they are the matter of the process that starts etcd. kInvalid: addresses that
// cannot be parsed.
Result<std::vector<CertificatePlan>> PlanCertificates(const InitConfiguration& config);
Result<std::vector<KubeconfigPlan>> PlanKubeconfigs(const InitConfiguration& config);

// kubeadm's RSA-2048 as lib/crypto's RSA2048.
std::string KeyKind(std::string_view encryption_algorithm);

}  // namespace keelson::ctl

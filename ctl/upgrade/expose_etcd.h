// `nodectl etcd expose`: gives the etcd of a single control plane, which listens on the loopback interface alone, an address of its
// machine and certificates for it, and the cluster an endpoint. Then further control planes can join. The data stays where it is.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "ctl/config/documents.h"
#include "ctl/host/host.h"
#include "ctl/pki/certificates.h"
#include "lib/base/clock.h"

namespace keelson::ctl {

struct ExposeOptions {
  std::string endpoint;                     // HOST or HOST:PORT of the control plane; empty: the cluster's
  std::vector<std::string> ignored_checks;  // in lower case
  bool dry_run = false;
};

// Every step is done again by a run after one that was killed. Before the restart of kube-controlplane nothing that runs has changed; the
// ConfigMap kubeadm-config names the endpoint at the end. kInvalid: the cluster uses an external etcd, has another endpoint, or none is
// given. Returns the cluster's endpoint.
Result<std::string> ExposeEtcd(Host& host, const ExposeOptions& options, std::ostream& out, std::ostream& err,
                               Clock& clock = Clock::Real());

// ---- without I/O ----

// The endpoint of the cluster from now on. `present`: the one that it has.
Result<std::string> ChooseEndpoint(const std::string& present, const std::string& wanted);
// `present` with the names and addresses of `wanted` that it lacks. Equal to `present`: there are none.
crypto::CertificateSubject WithNames(crypto::CertificateSubject present,
                                     const crypto::CertificateSubject& wanted);

}  // namespace keelson::ctl

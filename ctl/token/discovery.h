// How a machine that joins learns to trust a cluster: by a bootstrap token and pins of the CA's key, or by a kubeconfig.
#pragma once

#include <string>
#include <vector>

#include "ctl/config/documents.h"
#include "ctl/host/host.h"
#include "ctl/pki/kubeconfig.h"
#include "ctl/token/token.h"
#include "lib/base/clock.h"
#include "lib/client/rest.h"

namespace keelson::ctl {

// ---- without I/O ----

// The kubeconfig in the ConfigMap cluster-info, after the signature by the token has been verified. kInvalid with
// kubeadm's words: no signature, a wrong one, no kubeconfig.
Result<std::string> VerifiedKubeconfig(const corev1::ConfigMap& cluster_info, const TokenParts& token);
// Whether the key of the CA is one of the pins "sha256:HEX". kInvalid: it is not, or a pin is malformed.
Result<> CheckPins(const std::string& ca_pem, const std::vector<std::string>& pins);
// The pin of a CA: "sha256:HEX".
Result<std::string> PinOf(const std::string& ca_pem);

// ---- with it ----

// The cluster's server and CA, and credentials for TLS bootstrapping: the token, or what the discovery file has. Waits for
// the signature of the token up to the timeout `discovery`.
Result<Kubeconfig> DiscoverCluster(const JoinConfiguration& config, const Host& host, std::ostream& out,
                                   Clock& clock = Clock::Real());

// A client of the server that the kubeconfig names.
Result<client::RestClient> ClientFor(const Kubeconfig& config, std::chrono::seconds timeout);

}  // namespace keelson::ctl

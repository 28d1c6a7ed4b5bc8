// The identity of an API server among others: Kubernetes derives it from the host's name.
#pragma once

#include <string>

namespace keelson::crypto {

// "apiserver-" and 26 letters and digits made from the host's name.
std::string ApiServerIdentity();
// The label apiserver_id_hash of metrics: "sha256:..." of the identity.
const std::string& ApiServerIdHash();

}  // namespace keelson::crypto

// By which name an API server tells itself apart from others: of its host, as Kubernetes makes it.
#pragma once

#include <string>

namespace keelson::crypto {

// "apiserver-" and 26 letters and digits made from the host's name.
std::string ApiServerIdentity();
// What metrics show of it: "sha256:..." of the identity, the label apiserver_id_hash.
const std::string& ApiServerIdHash();

}  // namespace keelson::crypto

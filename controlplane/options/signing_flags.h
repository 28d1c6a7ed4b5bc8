// --cluster-signing-*: the CAs that sign certificates requested through the API.
#pragma once

#include <string>

#include "controlplane/controllers/common/options.h"

namespace CLI {
class App;
}

namespace keelson::controlplane {

struct SigningFlags {
  struct Pair {
    std::string certificate, key;  // files
    bool empty() const { return certificate.empty() && key.empty(); }
  };
  Pair all;  // for all four signers; else one pair each
  Pair kubelet_serving, kubelet_client, api_server_client, legacy_unknown;
  std::chrono::milliseconds duration = std::chrono::hours(24 * 365);
};

void AddSigningFlags(CLI::App& app, SigningFlags& flags);
// kInvalid when flags exclude each other, or only one file of a pair is given.
Result<controllers::CertificateSigning> SigningOf(const SigningFlags& flags);

}  // namespace keelson::controlplane

#include "controlplane/options/tls_options.h"

#include <charconv>

#include "lib/base/log.h"
#include "lib/crypto/tls_names.h"
#include "lib/crypto/tls_settings.h"

namespace keelson::controlplane {

std::vector<std::string> TlsFilesOf(const crypto::TlsServerOptions& tls) {
  std::vector<std::string> out = {tls.certificate_file, tls.key_file, tls.client_ca_file, tls.proxy_ca_file};
  for (const crypto::TlsServerOptions::Named& one : tls.named) {
    out.push_back(one.certificate_file);
    out.push_back(one.key_file);
  }
  return out;
}

Result<crypto::TlsServerOptions> TlsOptionsOf(const Options& options) {
  if (options.tls_certificate_file.empty() != options.tls_key_file.empty()) {
    return Error(Code::kInvalid, "--tls-cert-file and --tls-private-key-file must be specified together");
  }
  KEELSON_ASSIGN_OR_RETURN(const std::vector<std::string> warnings,
                           crypto::CheckTlsSettings(options.tls_min_version, options.tls_cipher_suites));
  for (const std::string& warning : warnings) log::Warn(warning);
  crypto::TlsServerOptions tls;
  tls.certificate_file = options.tls_certificate_file;
  tls.key_file = options.tls_key_file;
  tls.client_ca_file = options.client_ca_file;
  tls.min_version = options.tls_min_version;
  tls.cipher_suites = options.tls_cipher_suites;
  if (options.disable_http2) tls.alpn = {"http/1.1"};
  for (const std::string& text : options.tls_curves) {
    int number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc() || end != text.data() + text.size()) {
      return Error(Code::kInvalid, "--tls-curve-preferences: \"" + text + "\" is no number");
    }
    tls.curves.push_back(number);
  }
  if (Result<std::string> groups = crypto::GroupList(tls.curves); !groups) {
    return Error(Code::kInvalid, "--tls-curve-preferences: " + groups.error().message());
  }
  for (const std::string& text : options.tls_sni_certificates) {
    Result<crypto::TlsServerOptions::Named> named = crypto::ParseNamedCertificate(text);
    if (!named) {
      return Error(Code::kInvalid, "invalid argument \"" + text +
                                       "\" for \"--tls-sni-cert-key\" flag: " + named.error().message());
    }
    tls.named.push_back(*std::move(named));
  }
  return tls;
}

void SetConnections(const Options& options, http::ServerOptions& server) {
  if (options.http2_max_streams > 0) server.max_streams = static_cast<uint32_t>(options.http2_max_streams);
  server.reuse_port = options.permit_port_sharing;
}

Result<double> GoawayChance(const Options& options) {
  constexpr double kMost = 0.02;
  const double chance = options.goaway_chance;
  if (chance >= 0 && chance <= kMost) return chance;
  return Error(Code::kInvalid, "--goaway-chance can not be less than 0 or greater than 0.02");
}

}  // namespace keelson::controlplane

#include "controlplane/tls_options.h"

#include "lib/base/log.h"
#include "lib/http/tls_settings.h"

namespace keelson::controlplane {

Result<http::TlsServerOptions> TlsOptionsOf(const Options& options) {
  if (options.tls_certificate_file.empty() != options.tls_key_file.empty())
    return Error(Code::kInvalid, "--tls-cert-file and --tls-private-key-file must be specified together");
  ASSIGN_OR_RETURN(const std::vector<std::string> warnings,
                   http::CheckTlsSettings(options.tls_min_version, options.tls_cipher_suites));
  for (const std::string& warning : warnings) log::Warn(warning);
  http::TlsServerOptions tls;
  tls.certificate_file = options.tls_certificate_file;
  tls.key_file = options.tls_key_file;
  tls.client_ca_file = options.client_ca_file;
  tls.min_version = options.tls_min_version;
  tls.cipher_suites = options.tls_cipher_suites;
  if (options.disable_http2) tls.alpn = {"http/1.1"};
  return tls;
}

}  // namespace keelson::controlplane

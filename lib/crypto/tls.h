// TLS settings, and the identity of a peer. TLS 1.2 and 1.3.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace keelson::crypto {

struct TlsServerOptions {
  std::string certificate_file;  // PEM chain
  std::string key_file;          // PEM
  std::string client_ca_file;    // PEM bundle; empty: do not request client certificates
  // The server requests client certificates. If one does not verify, the handshake continues, ServerRequest::peer
  // stays empty and peer_refused is set, so that other authentication methods can follow.
  std::string proxy_ca_file;  // PEM bundle of front proxies' CAs; only sets from_proxy_ca
  std::vector<std::string> alpn = {"h2", "http/1.1"};
  // With the names of flags and configuration files (tls_settings.h): "VersionTLS13"; empty: 1.2 and OpenSSL's
  // default suites.
  std::string min_version = {};
  std::vector<std::string> cipher_suites = {};
  // TLS' numbers of key exchange groups, which Go uses too (29: X25519); empty: OpenSSL's default.
  std::vector<int> curves = {};
  // Certificates by SNI. The server uses the first match: exact names before wildcards, entries with `names` before
  // entries whose names come from the certificate. Without SNI the name is the address that the client has reached.
  // The certificate above is for all other names.
  struct Named {
    std::string certificate_file, key_file;
    std::vector<std::string> names;  // DNS names, "*.example.com", addresses; empty: the certificate's hosts
  };
  std::vector<Named> named = {};
};

struct TlsClientOptions {
  // Each of these is PEM text, not a file name. Empty: not used.
  std::string ca_pem;  // empty: the system's CAs
  std::string certificate_pem, key_pem;
  std::string server_name;  // SNI and name to verify; empty: the URL's host
  bool insecure_skip_verify = false;
};

struct PeerCertificate {
  std::string common_name;                 // Kubernetes user
  std::vector<std::string> organizations;  // Kubernetes groups
  // Kubernetes UID: the subject's attribute 1.3.6.1.4.1.57683.2; empty: none. `uid_problem` says why the attribute cannot
  // be used: it stands twice, is no string, or is empty. Such a certificate names no user.
  std::string uid, uid_problem;
  std::vector<std::string> dns_names, uris;
  std::string sha256_fingerprint;  // hex
  std::chrono::system_clock::time_point not_after = std::chrono::system_clock::time_point::max();
  bool from_client_ca = true, from_proxy_ca = false;  // the server's CAs that verify it

  // Whether the certificate may name a user at `now`: one of the client CAs verifies it, it has not ended, and it has at most
  // one UID.
  bool NamesUser(std::chrono::system_clock::time_point now) const {
    return from_client_ca && now <= not_after && uid_problem.empty();
  }
};

}  // namespace keelson::crypto

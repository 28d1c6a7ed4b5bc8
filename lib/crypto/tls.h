// TLS settings and what is known of a peer. TLS 1.2 and 1.3.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace keelson::crypto {

struct TlsServerOptions {
  std::string certificate_file;  // PEM chain
  std::string key_file;          // PEM
  std::string client_ca_file;    // PEM bundle; empty: no client certificates are asked for
  // Client certificates are asked for and, when presented, must verify (else the handshake goes on and
  // ServerRequest::peer stays empty and peer_refused is set): other ways to authenticate follow.
  std::string proxy_ca_file;  // PEM bundle: who may speak for others; tells only from_proxy_ca
  std::vector<std::string> alpn = {"h2", "http/1.1"};
  // As flags and configuration spell them (tls_settings.h): "VersionTLS13"; empty: 1.2 and what OpenSSL
  // takes.
  std::string min_version = {};
  std::vector<std::string> cipher_suites = {};
  // Numbers of key exchange groups as TLS and Go know them (29: X25519); empty: what OpenSSL takes.
  std::vector<int> curves = {};
  // Certificates for names that clients ask for. The first that fits is shown: exact names before wildcards,
  // those with `names` before those whose names come from the certificate. A client that names no host is
  // taken to ask for the address that it has reached. The certificate above is for all others.
  struct Named {
    std::string certificate_file, key_file;
    std::vector<std::string> names;  // DNS names, "*.example.com", addresses; empty: the certificate's hosts
  };
  std::vector<Named> named = {};
};

struct TlsClientOptions {
  // Each of these is PEM text; who has files reads them. Empty: not used.
  std::string ca_pem;  // empty: the system's CAs
  std::string certificate_pem, key_pem;
  std::string server_name;  // SNI and name to verify; empty: the URL's host
  bool insecure_skip_verify = false;
};

struct PeerCertificate {
  std::string common_name;                 // Kubernetes user
  std::vector<std::string> organizations;  // Kubernetes groups
  std::vector<std::string> dns_names, uris;
  std::string sha256_fingerprint;  // hex
  std::chrono::system_clock::time_point not_after = std::chrono::system_clock::time_point::max();
  bool from_client_ca = true, from_proxy_ca = false;  // which of the server's CAs it verifies against
};

}  // namespace keelson::crypto

// Certificates for the etcd that we run on the loopback interface.
#pragma once

#include <string>

#include "lib/base/error.h"

namespace keelson::etcd {

//   DIR/ca.crt ca.key           signs only the two others
//   DIR/server.crt server.key   etcd, for clients and peers (127.0.0.1, ::1, localhost)
//   DIR/client.crt client.key   the API server
struct Pki {
  std::string ca_file, server_certificate_file, server_key_file, client_certificate_file, client_key_file;
  std::string peer_certificate_file = {}, peer_key_file = {};  // empty: the server's
};

// Makes files that are missing, unreadable or about to expire. Only their owner can read the keys.
Result<Pki> EnsurePki(const std::string& dir);

}  // namespace keelson::etcd

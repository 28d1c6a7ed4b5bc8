// Certificates for an etcd of our own on the loopback interface.
#pragma once

#include <string>

#include "lib/base/error.h"

namespace keelson::etcd {

//   DIR/ca.crt ca.key           signs the two others and nothing else
//   DIR/server.crt server.key   etcd, towards clients and peers (127.0.0.1, ::1, localhost)
//   DIR/client.crt client.key   the API server
struct Pki {
  std::string ca_file, server_certificate_file, server_key_file, client_certificate_file, client_key_file;
};

// Makes what is missing, unreadable or close to its end; keys are readable by their owner only.
Result<Pki> EnsurePki(const std::string& dir);

}  // namespace keelson::etcd

// A command of a container on nodectl's own standard streams.
#pragma once

#include <string>

#include "lib/base/error.h"
#include "lib/crypto/tls.h"

namespace keelson::ctl {

struct CommandStream {
  bool tty = false, input = false;
  std::string transport = "spdy";
  std::string tls_server_name = "localhost", tls_ca, tls_certificate, tls_key;  // the last three: files
};
// kInvalid: a transport that nodectl does not have, or half a pair of files.
Result<> CheckStream(const CommandStream& stream);
// kInvalid: `url` is https, and no CA is given: the server could be anyone.
Result<crypto::TlsClientOptions> TlsOf(const CommandStream& stream, const std::string& url);

// Runs until the command ends, or ctrl-p ctrl-q on a terminal. The result is the command's exit code.
Result<int> RunStream(const CommandStream& stream, const std::string& url);

}  // namespace keelson::ctl

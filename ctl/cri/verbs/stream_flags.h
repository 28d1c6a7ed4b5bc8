// The flags of verbs that stream.
#pragma once

#include <CLI/CLI.hpp>

#include "ctl/cri/command_stream.h"

namespace keelson::ctl {

inline void AddStreamFlags(CLI::App& verb, CommandStream& stream) {
  verb.add_option("-r,--transport", stream.transport, "Transport of the stream: spdy")->capture_default_str();
  verb.add_option("--tls-sni,--tls-server-name", stream.tls_server_name, "Name in the runtime's certificate")
      ->capture_default_str();
  verb.add_option("--tls-ca", stream.tls_ca, "File of the CA of a runtime that streams over TLS");
  verb.add_option("--tls-cert", stream.tls_certificate, "File of nodectl's certificate for the stream");
  verb.add_option("--tls-key", stream.tls_key, "File of its key");
}

}  // namespace keelson::ctl

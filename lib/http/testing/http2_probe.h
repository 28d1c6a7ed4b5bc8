// For tests and fuzzers: a server's HTTP/2 session without TLS and ports.
#pragma once

#include <string>
#include <string_view>

#include "lib/http/server/server.h"

namespace keelson::http {

struct ProbeResult {
  std::string answer;  // everything that the server has sent
  bool gone = false;   // the connection ended and left nothing behind
};
// Serves a peer that sends these bytes (including the preface) and nothing else.
ProbeResult ProbeHttp2(std::string_view bytes, Handler handler);

}  // namespace keelson::http

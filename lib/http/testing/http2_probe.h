// For tests and fuzzers: a server's HTTP/2, apart from TLS and ports.
#pragma once

#include <string>
#include <string_view>

#include "lib/http/server/server.h"

namespace keelson::http {

struct ProbeResult {
  std::string answer;  // all that the server has sent
  bool gone = false;   // the connection has left nothing behind
};
// Serves a peer that sends these bytes, the preface among them, and then no more.
ProbeResult ProbeHttp2(std::string_view bytes, Handler handler);

}  // namespace keelson::http

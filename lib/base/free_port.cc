#include "lib/base/free_port.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/socket_address.h"

namespace keelson {
namespace {

// Below the usual node ports of Services, which kube-proxy may take on 127.0.0.1, too.
constexpr int kFirst = 10000, kLast = 29999;
constexpr int kEnough = 1000;
constexpr int kTries = 200;

// The last port to choose: that below the range of outgoing connections, unless this leaves too few.
int LastCandidate() {
  const std::string text = ReadFile("/proc/sys/net/ipv4/ip_local_port_range").value_or("");
  const long low = std::strtol(text.c_str(), nullptr, 10);
  return low >= kFirst + kEnough ? static_cast<int>(std::min<long>(low - 1, kLast)) : kLast;
}

}  // namespace

Result<uint16_t> FreePort() {
  std::random_device device;
  std::uniform_int_distribution<int> any(kFirst, LastCandidate());
  for (int i = 0; i < kTries; ++i) {
    const auto port = static_cast<uint16_t>(any(device));
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) return ErrnoError("socket");
    SocketAddress address(*IpAddress::Parse("127.0.0.1"), port);
    if (bind(fd.get(), address.get(), address.size()) == 0) return port;
    if (errno != EADDRINUSE && errno != EACCES) return ErrnoError("bind");
  }
  return Error(Code::kUnavailable, "no free port of 127.0.0.1 was found");
}

}  // namespace keelson

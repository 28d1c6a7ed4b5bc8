// The lower bound for the cost of a probe: its system calls for one peer after the other.
//
//   plain_probes tcp|http ROUNDS PORT ADDRESS...      prints microseconds of CPU per probe
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "lib/base/fd.h"

namespace {

double CpuSeconds() {
  rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

bool Await(int fd, short events) {
  pollfd waiting = {fd, events, 0};
  return ::poll(&waiting, 1, 1000) == 1;
}

bool Probe(const char* address, int port, bool http) {
  keelson::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in peer = {};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<uint16_t>(port));
  if (::inet_pton(AF_INET, address, &peer.sin_addr) != 1) return false;
  (void)::connect(fd.get(), reinterpret_cast<sockaddr*>(&peer), sizeof(peer));  // SO_ERROR has the result
  int failed = 0;
  socklen_t size = sizeof(failed);
  if (!Await(fd.get(), POLLOUT) || ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failed, &size) != 0 ||
      failed != 0) {
    return false;
  }
  if (!http) return true;
  const std::string request =
      "GET /passwd HTTP/1.1\r\nHost: " + std::string(address) + "\r\nConnection: close\r\n\r\n";
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return false;
  std::array<char, 16 << 10> buffer;
  ssize_t got = 0, all = 0;
  while (Await(fd.get(), POLLIN) && (got = ::recv(fd.get(), buffer.data(), buffer.size(), 0)) > 0) all += got;
  return got == 0 && all > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: plain_probes tcp|http ROUNDS PORT ADDRESS...\n");
    return 2;
  }
  const bool http = std::string_view(argv[1]) == "http";
  const int rounds = std::atoi(argv[2]), port = std::atoi(argv[3]);
  int probes = 0;
  const double before = CpuSeconds();
  for (int round = 0; round < rounds; ++round) {
    for (int i = 4; i < argc; ++i, ++probes) {
      if (!Probe(argv[i], port, http)) {
        std::fprintf(stderr, "plain_probes: %s does not answer\n", argv[i]);
        return 1;
      }
      // Apart, as real probes, so that caches are cold.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  std::printf("%.1f\n", 1e6 * (CpuSeconds() - before) / probes);
  return 0;
}

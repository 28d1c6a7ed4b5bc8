#include "tests/netns/bench_tools.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace keelson::netns {

sockaddr_in BenchAddress(const IpAddress& ip, uint16_t port) {
  sockaddr_in out{.sin_family = AF_INET, .sin_port = htons(port)};
  std::memcpy(&out.sin_addr, ip.bytes().data(), 4);
  return out;
}

Result<UniqueFd> SocketIn(const linux::NetNs& place) {
  UniqueFd out;
  KEELSON_RETURN_IF_ERROR(place.Run([&]() -> Result<> {
    out.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return out ? Result<>() : ErrnoError("socket");
  }));
  return out;
}

double Since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double Percentile(std::vector<double> values, int percent) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() * static_cast<size_t>(percent) / 100];
}

Sink::Sink(const linux::NetNs& place) {
  Result<UniqueFd> fd = SocketIn(place);
  if (!fd) std::abort();
  listener_ = std::move(*fd);
  sockaddr_in any = BenchAddress(*IpAddress::Parse("0.0.0.0"), kSinkPort);
  if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) != 0 ||
      ::listen(listener_.get(), 8192) != 0) {
    std::abort();
  }
  thread_ = std::thread([this] {
    while (true) {
      UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer) return;
      while (::recv(peer.get(), buffer_.data(), buffer_.size(), 0) > 0) continue;
      (void)::send(peer.get(), ".", 1, MSG_NOSIGNAL);
    }
  });
}

Sink::~Sink() {
  ::shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
}

Result<double> Stream(const PathBench& bench, const IpAddress& ip, uint16_t port) {
  static const std::vector<char> data(1 << 18);
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, SocketIn(bench.world->Place(bench.client)));
  const sockaddr_in to = BenchAddress(ip, port);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    return ErrnoError("connect");
  }
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 256; ++i) {
    if (::send(fd.get(), data.data(), data.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(data.size())) {
      return ErrnoError("send");
    }
  }
  ::shutdown(fd.get(), SHUT_WR);
  char all;
  if (::recv(fd.get(), &all, 1, MSG_WAITALL) != 1) return ErrnoError("receive");
  return Since(begin);
}

}  // namespace keelson::netns

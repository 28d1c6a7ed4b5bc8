#include "lib/http/testing/http2_probe.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <future>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/http/server/core.h"

namespace keelson::http {

ProbeResult ProbeHttp2(std::string_view bytes, Handler handler) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) abort();
  UniqueFd peer(fds[0]), server(fds[1]);
  fcntl(server.get(), F_SETFL, O_NONBLOCK);
  timeval limit{10, 0};
  setsockopt(peer.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);

  std::shared_ptr<event::Loop> loop = event::Loop::Create("http2-probe");
  auto core = std::make_shared<ServerCore>(ServerOptions(), std::move(handler));
  auto channel = std::make_shared<Channel>(loop, std::move(server), nullptr);
  loop->Post([core, channel = std::move(channel)] {
    channel->Handshake(std::chrono::seconds(1), [&](Result<>) {
      StartHttp2(core, channel, {"probe", std::nullopt, false});
    });
  });
  (void)WriteAll(peer.get(), bytes, "probe");
  shutdown(peer.get(), SHUT_WR);
  ProbeResult out;
  char buffer[4096];
  ssize_t n;
  while ((n = recv(peer.get(), buffer, sizeof buffer, 0)) > 0) {
    out.answer.append(buffer, static_cast<size_t>(n));
  }
  core->pool.Stop();
  std::promise<void> settled;  // the end may be seen before the loop is done with it
  loop->Post([&] { settled.set_value(); });
  settled.get_future().wait();
  out.gone = n == 0 && core->All().empty();
  return out;
}

}  // namespace keelson::http

// nodectl port-forward
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <iostream>
#include <optional>
#include <thread>

#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/port_pair.h"
#include "ctl/cri/verbs/stream_flags.h"
#include "ctl/cri/verbs/verb.h"
#include "lib/base/fd.h"
#include "lib/http/streaming/streaming_client.h"

namespace keelson::ctl {
namespace {

struct PortForwardOptions {
  std::string pod;
  std::vector<std::string> ports;
  CommandStream stream;
};

std::optional<uint16_t> PortNumber(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

// Listens on a loopback address, and sets the port that it got.
Result<UniqueFd> Listen(int family, uint16_t& port) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoError("make socket");
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = in6addr_loopback;
  const bool is_v4 = family == AF_INET;
  auto* address = is_v4 ? reinterpret_cast<sockaddr*>(&v4) : reinterpret_cast<sockaddr*>(&v6);
  socklen_t size = is_v4 ? sizeof(v4) : sizeof(v6);
  if (::bind(fd.get(), address, size) != 0 || ::listen(fd.get(), SOMAXCONN) != 0 ||
      ::getsockname(fd.get(), address, &size) != 0) {
    return ErrnoError("listen on port " + std::to_string(port));
  }
  port = ntohs(is_v4 ? v4.sin_port : v6.sin6_port);
  return fd;
}

// A URL of the runtime serves one connection, so that each gets its own.
Result<> Forward(CriClient& client, const PortForwardOptions& options, uint16_t port, int socket) {
  cri::PortForwardRequest request;
  request.set_pod_sandbox_id(options.pod);
  request.add_port(port);
  const auto reply = client.Ask(&RuntimeStub::PortForward, request);
  if (!reply) return reply.error();
  http::StreamingTarget target;
  target.url = reply->url();
  KEELSON_ASSIGN_OR_RETURN(target.tls, TlsOf(options.stream, target.url));
  return http::ForwardPort(target, port, socket);
}

void Accept(CriClient& client, const PortForwardOptions& options, PortPair ports, const UniqueFd& listener) {
  for (;;) {
    const int connection = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      std::cerr << "nodectl: " << ErrnoError("accept a connection").message() << "\n";
      return;
    }
    std::cout << "Handling connection for " + std::to_string(ports.local) + "\n" << std::flush;
    std::thread([&client, &options, ports, connection] {
      const UniqueFd socket(connection);
      if (const Result<> done = Forward(client, options, ports.remote, socket.get()); !done) {
        std::cerr << "nodectl: port forward: " + done.error().message() + "\n";
      }
    }).detach();
  }
}

// Until a signal ends nodectl.
Result<int> PortForward(CriClient& client, const PortForwardOptions& options) {
  KEELSON_RETURN_IF_ERROR(CheckStream(options.stream));
  struct Listener {
    PortPair ports;
    UniqueFd fd;
  };
  std::vector<Listener> listeners;
  for (const std::string& text : options.ports) {
    KEELSON_ASSIGN_OR_RETURN(PortPair ports, ParsePortPair(text));
    KEELSON_ASSIGN_OR_RETURN(UniqueFd v4, Listen(AF_INET, ports.local));
    std::cout << "Forwarding from 127.0.0.1:" << ports.local << " -> " << ports.remote << "\n";
    listeners.push_back({ports, std::move(v4)});
    if (Result<UniqueFd> v6 = Listen(AF_INET6, ports.local)) {
      std::cout << "Forwarding from [::1]:" << ports.local << " -> " << ports.remote << "\n";
      listeners.push_back({ports, *std::move(v6)});
    }
  }
  std::cout.flush();
  std::vector<std::jthread> threads;
  for (const Listener& one : listeners) {
    threads.emplace_back([&client, &options, &one] { Accept(client, options, one.ports, one.fd); });
  }
  threads.clear();
  return Error(Code::kInternal, "no port takes connections any more");
}

}  // namespace

Result<PortPair> ParsePortPair(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string remote_text = colon == std::string::npos ? text : text.substr(colon + 1);
  const std::string local_text = text.substr(0, colon);
  const std::optional<uint16_t> remote = PortNumber(remote_text);
  const std::optional<uint16_t> local = local_text.empty() ? uint16_t{0} : PortNumber(local_text);
  if (!remote || *remote == 0 || !local) {
    return Error(Code::kInvalid, "\"" + text + "\" is not [LOCAL_PORT:]REMOTE_PORT");
  }
  return PortPair{*local, *remote};
}

void AddCriPortForward(const CriVerbs& verbs) {
  auto options = std::make_shared<PortForwardOptions>();
  CLI::App* verb = verbs.Add("port-forward", "Forward ports of this machine to a pod",
                             [options](CriClient& client) { return PortForward(client, *options); });
  verb->add_option("POD-ID", options->pod, "The pod")->required();
  verb->add_option("PORT", options->ports, "[LOCAL:]REMOTE; a local 0 is any free one")->required();
  AddStreamFlags(*verb, options->stream);
}

}  // namespace keelson::ctl

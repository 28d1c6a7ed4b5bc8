#include "lib/http/streaming/streaming.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "lib/base/text.h"
#include "lib/http/streaming/remote_command.h"
#include "lib/http/streaming/websocket.h"

namespace keelson::http {
namespace {

constexpr std::chrono::seconds kUpgradeTimeout{30};
constexpr std::string_view kTunnel = "SPDY/3.1+portforward.k8s.io";
constexpr size_t kMaxPorts = 127;  // two channels each, in a byte

void Refuse(ResponseWriter& writer, int status, const std::string& message) {
  writer.Reply(status, {{"Content-Type", "text/plain; charset=utf-8"}}, message + "\n");
}

// Requests an upgrade from `upstream`; passes a response other than 101 on to the client.
std::optional<Client::Upgraded> AskUpstream(const ClientRequest& request, ResponseWriter& writer,
                                            Client& upstream) {
  ClientResponse refusal;
  Result<Client::Upgraded> upgraded = upstream.Upgrade(request, kUpgradeTimeout, {}, &refusal);
  if (upgraded) return std::move(*upgraded);
  if (refusal.status == 0) {
    Refuse(writer, 502, "error dialing backend: " + upgraded.error().message());
    return std::nullopt;
  }
  Headers headers;
  if (refusal.headers.Has("Content-Type")) {
    headers.Add("Content-Type", std::string(refusal.headers.Get("Content-Type")));
  }
  writer.Reply(refusal.status, std::move(headers), std::move(refusal.body));
  return std::nullopt;
}

bool StartsWithIgnoreCase(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && EqualsIgnoreCase(text.substr(0, prefix.size()), prefix);
}

ClientRequest SpdyRequest(const std::string& target, const char* protocol, const Headers& extra) {
  ClientRequest request;
  request.method = "POST";
  request.target = target;
  request.headers = {
      {"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}, {"X-Stream-Protocol-Version", protocol}};
  for (const auto& [name, value] : extra) request.headers.Add(name, value);
  return request;
}

void ServeRemoteCommand(const ServerRequest& request, ResponseWriter& writer, Client& upstream,
                        const std::string& target, const Headers& extra) {
  std::optional<ChannelProtocol> protocol = ChooseCommandProtocol(OfferedSubprotocols(request));
  if (!protocol) return Refuse(writer, 400, "none of the WebSocket subprotocols is supported");
  Result<RemoteCommandStreams> streams = ParseRemoteCommand(request.query);
  if (!streams) return Refuse(writer, 400, streams.error().message());
  Result<Headers> accept = WebSocketHandshake(request, protocol->name);
  if (!accept) return Refuse(writer, 400, accept.error().message());
  auto upgraded = AskUpstream(SpdyRequest(target, "v4.channel.k8s.io", extra), writer, upstream);
  if (!upgraded) return;
  Result<std::unique_ptr<Stream>> client = writer.Upgrade(std::move(*accept));
  if (client) RelayRemoteCommand(std::move(*client), std::move(upgraded->stream), *protocol, *streams);
}

// The ports in a WebSocket client's request: ?ports=80&ports=443 or ?ports=80,443.
Result<std::vector<uint16_t>> PortsOf(const Query& query) {
  std::vector<uint16_t> ports;
  for (const char* name : {"port", "ports"}) {
    for (std::string_view list : query.All(name)) {
      while (!list.empty()) {
        std::string_view text = list.substr(0, list.find(','));
        list.remove_prefix(std::min(list.size(), text.size() + 1));
        uint16_t port = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
        if (error != std::errc() || end != text.data() + text.size() || port == 0) {
          return Error(Code::kBadRequest, fmt::format("unable to parse \"{}\" as a port", text));
        }
        ports.push_back(port);
      }
    }
  }
  if (ports.empty()) return Error(Code::kBadRequest, "query parameter \"port\" is required");
  if (ports.size() > kMaxPorts) return Error(Code::kBadRequest, "too many ports");
  return ports;
}

void ServePortForward(const ServerRequest& request, ResponseWriter& writer, Client& upstream,
                      const std::string& target, const Headers& extra) {
  std::vector<std::string> offered = OfferedSubprotocols(request);
  const bool tunnel = std::find(offered.begin(), offered.end(), kTunnel) != offered.end();
  std::optional<ChannelProtocol> protocol = ChoosePortProtocol(offered);
  if (!tunnel && !protocol) return Refuse(writer, 400, "none of the WebSocket subprotocols is supported");
  Result<std::vector<uint16_t>> ports = std::vector<uint16_t>();
  if (!tunnel) ports = PortsOf(request.query);
  if (!ports) return Refuse(writer, 400, ports.error().message());
  Result<Headers> accept = WebSocketHandshake(request, tunnel ? std::string(kTunnel) : protocol->name);
  if (!accept) return Refuse(writer, 400, accept.error().message());
  auto upgraded = AskUpstream(SpdyRequest(target, "portforward.k8s.io", extra), writer, upstream);
  if (!upgraded) return;
  Result<std::unique_ptr<Stream>> client = writer.Upgrade(std::move(*accept));
  if (!client) return;
  if (tunnel) return RelayTunnel(std::move(*client), std::move(upgraded->stream));
  RelayPorts(std::move(*client), std::move(upgraded->stream), *protocol, *ports);
}

}  // namespace

bool IsUpgradeRequest(const ServerRequest& request) {
  for (std::string_view list : request.headers.All("Connection")) {
    std::string lower(list);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    if (lower.find("upgrade") != std::string::npos) return request.headers.Has("Upgrade");
  }
  return false;
}

Result<RemoteCommandStreams> ParseRemoteCommand(const Query& query) {
  auto either = [&](const char* kubelet, const char* api) {
    return query.GetBool(kubelet) || query.GetBool(api);
  };
  RemoteCommandStreams streams;
  streams.in = either("input", "stdin");
  streams.out = either("output", "stdout");
  streams.err = either("error", "stderr");
  streams.tty = query.GetBool("tty");
  if (streams.tty) streams.err = false;  // a terminal has one output
  if (!streams.in && !streams.out && !streams.err) {
    return Error(Code::kBadRequest, "you must specify at least 1 of stdin, stdout, stderr");
  }
  return streams;
}

void ProxyUpgrade(const ServerRequest& request, std::shared_ptr<ResponseWriter> writer, Client& upstream,
                  const std::string& target, const Headers& extra) {
  ClientRequest out;
  out.method = request.method;
  out.target = target;
  for (const auto& [name, value] : request.headers) {
    bool ours = EqualsIgnoreCase(name, "Authorization") || EqualsIgnoreCase(name, "Host") ||
                EqualsIgnoreCase(name, "Content-Length") || EqualsIgnoreCase(name, "Transfer-Encoding") ||
                StartsWithIgnoreCase(name, "Impersonate-") || StartsWithIgnoreCase(name, "X-Remote-");
    ours = ours || EqualsIgnoreCase(name, "Sec-WebSocket-Protocol");
    if (!ours) out.headers.Add(name, value);
  }
  // Drop the client's token, which is for us alone.
  std::vector<std::string> protocols = OfferedSubprotocols(request);
  if (!protocols.empty()) {
    out.headers.Add("Sec-WebSocket-Protocol", fmt::format("{}", fmt::join(protocols, ", ")));
  }
  for (const auto& [name, value] : extra) out.headers.Add(name, value);
  out.body = request.body;
  auto upgraded = AskUpstream(out, *writer, upstream);
  if (!upgraded) return;
  Result<std::unique_ptr<Stream>> client = writer->Upgrade(std::move(upgraded->headers));
  if (client) Splice(std::move(*client), std::move(upgraded->stream));
}

void ServeStreaming(const ServerRequest& request, std::shared_ptr<ResponseWriter> writer, StreamingKind kind,
                    Client& upstream, const std::string& target, const Headers& extra) {
  if (!IsUpgradeRequest(request)) {
    return Refuse(*writer, 400, "unable to upgrade: missing upgrade headers in request");
  }
  if (!IsWebSocketRequest(request)) return ProxyUpgrade(request, std::move(writer), upstream, target, extra);
  if (kind == StreamingKind::kPortForward) return ServePortForward(request, *writer, upstream, target, extra);
  ServeRemoteCommand(request, *writer, upstream, target, extra);
}

void ServeStreaming(const ServerRequest& request, std::shared_ptr<ResponseWriter> writer, StreamingKind kind,
                    const std::string& url) {
  size_t scheme = url.find("://");
  size_t slash = scheme == std::string::npos ? std::string::npos : url.find('/', scheme + 3);
  ClientOptions options;
  options.base_url = url.substr(0, slash);
  Result<std::unique_ptr<Client>> client = Client::Create(std::move(options));
  if (!client) return Refuse(*writer, 500, client.error().message());
  std::string target = slash == std::string::npos ? "/" : url.substr(slash);
  ServeStreaming(request, std::move(writer), kind, **client, target, {});
}

}  // namespace keelson::http

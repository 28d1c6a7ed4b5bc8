#include "lib/http/testing/hostile_peer.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>

namespace keelson::http {
namespace {

uint32_t Number(std::string_view bytes) {
  uint32_t out = 0;
  for (char c : bytes) out = out << 8 | static_cast<uint8_t>(c);
  return out;
}

}  // namespace

RawPeer::RawPeer(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  timeval limit{10, 0};
  setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) abort();
}

bool RawPeer::Send(std::string_view bytes) {
  return send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

void RawPeer::HalfClose() { shutdown(fd_.get(), SHUT_WR); }

std::string RawPeer::ReadAll() {
  std::string out;
  char buffer[4096];
  ssize_t n;
  while ((n = recv(fd_.get(), buffer, sizeof buffer, 0)) > 0) out.append(buffer, static_cast<size_t>(n));
  return out;
}

std::string RawPeer::ReadUntil(const std::string& mark) {
  std::string out;
  char c;
  while (out.find(mark) == std::string::npos && recv(fd_.get(), &c, 1, 0) == 1) out += c;
  return out;
}

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string out;
  for (int shift = 16; shift >= 0; shift -= 8) out += static_cast<char>(payload.size() >> shift & 0xff);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(stream >> shift & 0xff);
  return out.append(payload);
}

std::optional<Http2Frame> TakeFrame(std::string& bytes) {
  if (bytes.size() < 9) return std::nullopt;
  std::string_view head(bytes);
  size_t size = Number(head.substr(0, 3));
  if (bytes.size() < 9 + size) return std::nullopt;
  Http2Frame out{static_cast<uint8_t>(head[3]), static_cast<uint8_t>(head[4]),
                 Number(head.substr(5, 4)) & 0x7fffffffu, bytes.substr(9, size)};
  bytes.erase(0, 9 + size);
  return out;
}

const std::string kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0, "");
// :method GET, :scheme https, :path /, :authority x
const std::string kHttp2Get("\x82\x87\x84\x41\x01x", 6);

RawTls::RawTls(uint16_t port, bool http2) : raw_(port), tls_(raw_.fd(), http2 ? "h2" : "") {}

std::optional<Http2Frame> RawTls::Read() {
  for (;;) {
    if (std::optional<Http2Frame> frame = TakeFrame(in_)) return frame;
    const std::string more = tls_.Read();
    if (more.empty()) return std::nullopt;
    in_ += more;
  }
}

std::optional<Http2Frame> RawTls::Await(uint8_t type) {
  for (;;) {
    std::optional<Http2Frame> frame = Read();
    if (!frame || frame->type == type) return frame;
  }
}

}  // namespace keelson::http

// For tests: peers that send arbitrary bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/fd.h"
#include "lib/crypto/testing/blocking_tls.h"

namespace keelson::http {

// A TCP connection to a local port. Calls wait ten seconds at most.
class RawPeer {
 public:
  explicit RawPeer(uint16_t port);
  bool Send(std::string_view bytes);
  void HalfClose();
  std::string ReadAll();  // until the peer closes
  std::string ReadUntil(const std::string& mark);
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

struct Http2Frame {
  uint8_t type = 0, flags = 0;
  uint32_t stream = 0;
  std::string payload;
};
enum Http2FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kRstStream = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};
std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload);
// Removes the first frame from `bytes`; nullopt: it is incomplete.
std::optional<Http2Frame> TakeFrame(std::string& bytes);

// A client's preface with empty settings; and the header block of GET / with authority x.
extern const std::string kHttp2Preface;
extern const std::string kHttp2Get;

// A TLS connection; negotiates h2 by default.
class RawTls {
 public:
  explicit RawTls(uint16_t port, bool http2 = true);
  bool Send(std::string_view bytes) { return tls_.Send(bytes); }
  // The next frame; nullopt: the connection has ended.
  std::optional<Http2Frame> Read();
  // Reads until a frame of this type arrives.
  std::optional<Http2Frame> Await(uint8_t type);

 private:
  RawPeer raw_;
  crypto::BlockingTls tls_;
  std::string in_;
};

}  // namespace keelson::http

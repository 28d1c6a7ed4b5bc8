// SPDY/3.1 frames for a client of Kubernetes' streaming servers: it opens streams, sends and receives data.
// Internal to lib/http/streaming.
//
// The servers (moby/spdystream) have no flow control windows, and drop data for a stream that they have not
// replied to. So wait for the reply, and rely on TCP's flow control.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/http/message.h"

namespace keelson::http {

std::string_view SpdyDictionary();  // for SPDY/3 header blocks

class SpdyWriter {
 public:
  SpdyWriter();
  ~SpdyWriter();
  // Append frames to `out`. A client's stream ids are odd and increase. Header names are in lower case.
  void SynStream(std::string& out, uint32_t stream, const Headers& headers);
  static void Data(std::string& out, uint32_t stream, std::string_view bytes, bool fin);
  static void RstStream(std::string& out, uint32_t stream, uint32_t status);
  static void Ping(std::string& out, uint32_t id);
  static void GoAway(std::string& out, uint32_t last_stream, uint32_t status);

 private:
  struct Deflater;
  std::unique_ptr<Deflater> deflater_;  // one for the connection: header blocks build on each other
};

// Parses what the server sends. Skips header blocks: nothing in them is needed.
class SpdyParser {
 public:
  struct Events {
    std::function<void(uint32_t stream)> on_reply;
    // Data as it arrives; `fin` with the last piece (which may be empty).
    std::function<void(uint32_t stream, std::string_view bytes, bool fin)> on_data;
    std::function<void(uint32_t stream)> on_reset;
    std::function<void(uint32_t id)> on_ping;
    std::function<void()> on_goaway;
  };
  explicit SpdyParser(Events events) : events_(std::move(events)) {}
  Result<> Feed(std::string_view bytes);  // kUnavailable: not SPDY/3

 private:
  Result<> BeginFrame();
  void EndControl();

  Events events_;
  std::string head_;     // 8 bytes
  std::string control_;  // the first bytes of a control frame
  bool in_frame_ = false, is_control_ = false;
  uint16_t type_ = 0;
  uint8_t flags_ = 0;
  uint32_t stream_ = 0;
  uint32_t left_ = 0;
};

}  // namespace keelson::http

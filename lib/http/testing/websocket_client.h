// What a WebSocket client sends and reads, with blocking calls.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "lib/http/testing/fixture.h"

namespace keelson::http {

// Blocking calls on a Stream.
class BlockingStream {
 public:
  explicit BlockingStream(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}
  std::string Read() {  // empty at the end
    std::promise<Result<std::string>> done;
    stream_->AsyncRead([&](Result<std::string> r) { done.set_value(std::move(r)); });
    auto future = done.get_future();
    if (future.wait_for(kSoon) != std::future_status::ready) {
      ADD_FAILURE() << "nothing to read";
      stream_->Close();
    }
    return future.get().value_or("");
  }
  bool Write(std::string data) {
    std::promise<bool> done;
    stream_->AsyncWrite(std::move(data), [&](Result<> r) { done.set_value(r.has_value()); });
    return done.get_future().get();
  }
  Stream& stream() { return *stream_; }

 private:
  std::unique_ptr<Stream> stream_;
};

// A frame as a client sends it, whose first byte has the opcode.
inline std::string ClientFrame(uint8_t first, std::string_view payload) {
  std::string out(1, static_cast<char>(first));
  if (payload.size() < 126) {
    out += static_cast<char>(0x80 | payload.size());
  } else {
    out += static_cast<char>(0x80 | 127);
    for (int i = 7; i >= 0; --i) out += static_cast<char>(payload.size() >> (8 * i) & 0xff);
  }
  return out.append(4, '\0').append(payload);  // a mask of zeros
}

// Parses the WebSocket frames that a peer sends: {opcode, payload}, {-1, ""} at the end.
class WsReader {
 public:
  explicit WsReader(BlockingStream& wire) : wire_(wire) {}
  std::pair<int, std::string> Next() {
    for (;;) {
      if (buffer_.size() >= 2) {
        size_t size = static_cast<unsigned char>(buffer_[1]), head = 2;
        if (size == 126) head = 4;
        if (size == 127) head = 10;
        if (buffer_.size() >= head) {
          if (head > 2) {
            size = 0;
            for (size_t i = 2; i < head; ++i) size = size << 8 | static_cast<unsigned char>(buffer_[i]);
          }
          if (buffer_.size() >= head + size) {
            int opcode = buffer_[0] & 15;
            std::string payload = buffer_.substr(head, size);
            buffer_.erase(0, head + size);
            return {opcode, payload};
          }
        }
      }
      std::string more = wire_.Read();
      if (more.empty()) return {-1, ""};
      buffer_ += more;
    }
  }

 private:
  BlockingStream& wire_;
  std::string buffer_;
};

}  // namespace keelson::http

// The server's side of SPDY/3.1 frames, for tests: parses what a client sends, header blocks included.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "lib/http/streaming/spdy.h"

namespace keelson::http {

class SpdyTestPeer {
 public:
  struct Frame {
    int type = 0;  // 0: DATA
    uint32_t stream = 0;
    bool fin = false;
    std::string data;
    Headers headers;  // for SYN_STREAM
  };

  SpdyTestPeer() { inflateInit(&stream_); }
  ~SpdyTestPeer() { inflateEnd(&stream_); }

  // The frames that are complete after these bytes.
  std::vector<Frame> Take(std::string_view bytes) {
    buffer_ += bytes;
    std::vector<Frame> frames;
    while (buffer_.size() >= 8) {
      uint32_t length = Read32(4) & 0xffffff;
      if (buffer_.size() < 8 + length) break;
      Frame frame;
      frame.fin = buffer_[4] & 1;
      if (Read32(0) >> 31) {
        frame.type = static_cast<int>(Read32(0) & 0xffff);
        frame.stream = Read32(8);
        if (frame.type == 1) frame.headers = Inflate(buffer_.substr(18, length - 10));
      } else {
        frame.stream = Read32(0);
        frame.data = buffer_.substr(8, length);
      }
      buffer_.erase(0, 8 + length);
      frames.push_back(std::move(frame));
    }
    return frames;
  }

  static std::string Reply(uint32_t stream) {
    std::string out("\x80\x03\x00\x02\x00\x00\x00\x04", 8);
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(stream >> shift & 0xff);
    return out;
  }

 private:
  uint32_t Read32(size_t at) const { return Read32(buffer_, at); }
  static uint32_t Read32(const std::string& text, size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(text.at(at + i));
    return value;
  }
  Headers Inflate(std::string compressed) {
    std::string plain(16384, '\0');
    stream_.next_in = reinterpret_cast<Bytef*>(compressed.data());
    stream_.avail_in = static_cast<uInt>(compressed.size());
    stream_.next_out = reinterpret_cast<Bytef*>(plain.data());
    stream_.avail_out = static_cast<uInt>(plain.size());
    int result = inflate(&stream_, Z_SYNC_FLUSH);
    if (result == Z_NEED_DICT) {
      std::string_view dictionary = SpdyDictionary();
      EXPECT_EQ(inflateSetDictionary(&stream_, reinterpret_cast<const Bytef*>(dictionary.data()),
                                     static_cast<uInt>(dictionary.size())),
                Z_OK);
      result = inflate(&stream_, Z_SYNC_FLUSH);
    }
    EXPECT_EQ(result, Z_OK);
    plain.resize(plain.size() - stream_.avail_out);
    Headers headers;
    size_t at = 4;
    auto next = [&] {
      uint32_t size = Read32(plain, at);
      std::string text = plain.substr(at + 4, size);
      at += 4 + size;
      return text;
    };
    for (uint32_t count = Read32(plain, 0); count > 0; --count) {
      std::string name = next();
      headers.Add(name, next());
    }
    return headers;
  }

  std::string buffer_;
  z_stream stream_{};
};

}  // namespace keelson::http

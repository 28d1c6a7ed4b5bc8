// Watch responses in protobuf: frames of a 4-byte big-endian length and a meta.v1 WatchEvent, whose object
// is an enveloped object in turn.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/client/rest.h"
#include "lib/client/transport.h"

namespace keelson::client {

// Cuts a byte stream into frames.
class FrameReader {
 public:
  void Append(std::string_view bytes);
  // The next whole frame, valid until the next call of either method; nullopt when more bytes are needed.
  // kTooLarge for a length beyond what any object can have.
  Result<std::optional<std::string_view>> Next();

 private:
  std::string buffer_;
  size_t read_ = 0;
};

// One frame's payload. An ERROR event comes back as the error that its Status describes.
Result<WatchEvent> DecodeWatchEvent(std::string_view frame);
std::string EncodeWatchFrame(std::string_view type, std::string_view enveloped_object);

std::unique_ptr<WatchStream> NewWatchStream(std::unique_ptr<ApiStream> stream, std::stop_token stop);

}  // namespace keelson::client

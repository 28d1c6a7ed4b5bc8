// Watch responses in protobuf: frames with a 4-byte big-endian length and a meta.v1 WatchEvent, which
// contains an enveloped object. Watches of metadata also understand JSON, an event a line; those of custom resources
// have nothing else.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/client/json_objects.h"
#include "lib/client/rest.h"
#include "lib/client/transport.h"

namespace keelson::client {

// Splits a byte stream into frames, or into lines if it is JSON.
class FrameReader {
 public:
  void Append(std::string_view bytes);
  // The next whole frame, valid until the next call of either method; nullopt: more bytes are needed.
  // kTooLarge when the length exceeds any object's.
  Result<std::optional<std::string_view>> Next();

 private:
  Result<std::optional<std::string_view>> NextLine(std::string_view rest);

  std::string buffer_;
  size_t read_ = 0;
};

// ADDED, MODIFIED, DELETED or BOOKMARK; kInternal for other words.
Result<WatchEvent::Type> WatchEventType(std::string_view name);
// Decodes one frame's payload, or a line of JSON, whose objects take the given form. An ERROR event becomes the error that
// its Status describes.
Result<WatchEvent> DecodeWatchEvent(std::string_view frame, JsonObjects form = JsonObjects::kMetadata);
std::string EncodeWatchFrame(std::string_view type, std::string_view enveloped_object);

std::unique_ptr<WatchStream> NewWatchStream(std::unique_ptr<ApiStream> stream, std::stop_token stop,
                                            JsonObjects form = JsonObjects::kMetadata);

}  // namespace keelson::client

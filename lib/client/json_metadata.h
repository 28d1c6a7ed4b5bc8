// Metadata from servers that speak JSON alone, as some extension API servers do: read from whole objects or
// PartialObjectMetadata, and handed on in the wire form of metav1::PartialObjectMetadata that other servers send.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "lib/client/rest.h"

namespace keelson::client {

// Protobuf bodies begin otherwise: with an envelope's magic, watch frames with a length below 2 GiB.
inline bool IsJson(std::string_view body) { return body.starts_with('{'); }

// Parses one page of a list: passes items to `each`, and fills `meta`. kBadRequest: malformed.
Result<> ReadJsonList(std::string_view body, metav1::ListMeta& meta,
                      const std::function<Result<>(std::string_view raw)>& each);
// The event of one line of a watch. An ERROR event becomes the error that its Status describes.
Result<WatchEvent> DecodeJsonWatchEvent(std::string_view line);

}  // namespace keelson::client

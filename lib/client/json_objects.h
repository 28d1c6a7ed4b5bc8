// Objects from servers that answer in JSON: custom resources, which have no other form, and metadata from extension API
// servers that speak JSON alone. They are handed on as other objects come: in the wire form of CustomObject
// (lib/api/codec/custom_object.h) or of metav1::PartialObjectMetadata.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "lib/client/rest.h"

namespace keelson::client {

enum class JsonObjects { kMetadata, kCustom };

// Protobuf bodies begin otherwise: with an envelope's magic, watch frames with a length below 2 GiB.
inline bool IsJson(std::string_view body) { return body.starts_with('{'); }

// Parses one page of a list: passes items to `each`, and fills `meta`. kBadRequest: malformed.
Result<> ReadJsonList(JsonObjects form, std::string_view body, metav1::ListMeta& meta,
                      const std::function<Result<>(std::string_view raw)>& each);
// The event of one line of a watch. An ERROR event becomes the error that its Status describes.
Result<WatchEvent> DecodeJsonWatchEvent(JsonObjects form, std::string_view line);

}  // namespace keelson::client

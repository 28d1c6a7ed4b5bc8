// Reads protobuf bytes without a message type, for lists and watch events.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::client {

// Calls `each` with the number and payload of every length-delimited field of a message, in order; skips
// other fields. kBadRequest when the bytes are not a protobuf message.
Result<> ForEachField(std::string_view message,
                      const std::function<Result<>(int number, std::string_view payload)>& each);

// One field of a message: `payload` of a length-delimited one, `value` of a varint; the other is empty or 0.
struct WireField {
  int number = 0;
  std::string_view payload;
  uint64_t value = 0;
};
// Like ForEachField(), for fields of all wire types.
Result<> ForEachWireField(std::string_view message, const std::function<Result<>(const WireField&)>& each);

// What an informer keeps of an object: everything but metadata.managedFields, which no user of a cache
// needs and which is often the larger part; with `metadata_only`, only metadata. kBadRequest as above.
Result<std::string> TrimObject(std::string_view object, bool metadata_only);

}  // namespace keelson::client

// Looks into protobuf bytes without a message type: what lists and watch events need.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::client {

// Calls `each` with number and payload of every length-delimited field of a message, in order; others are
// passed over. kBadRequest when the bytes are no protobuf message.
Result<> ForEachField(std::string_view message,
                      const std::function<Result<>(int number, std::string_view payload)>& each);

// What an informer keeps of an object: all but metadata.managedFields, which nobody asks a cache for and
// which is often the larger part; `metadata_only`: nothing but metadata. kBadRequest as above.
Result<std::string> TrimObject(std::string_view object, bool metadata_only);

}  // namespace keelson::client

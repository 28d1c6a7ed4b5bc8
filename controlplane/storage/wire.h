// Reads and changes metadata in the wire bytes of API objects, without decoding them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"

namespace keelson::storage {

// Every API object has its metadata in field 1. Appends to `out` the object with
// metadata.resourceVersion = `revision` (0: without one). kInternal when the bytes are no protobuf.
Result<> AppendWithRevision(std::string_view object, int64_t revision, std::string& out);

// An object's metadata alone, as the bytes of an object that has nothing else; empty when it has none.
std::string_view MetadataOnly(std::string_view object);

// metadata.labels, sorted by key; views into `object`, which must be well-formed.
std::vector<std::pair<std::string_view, std::string_view>> FindLabels(std::string_view object);

// An envelope (application/vnd.kubernetes.protobuf) around the object with `revision` (nothing: with the
// resourceVersion that it has); tells where the object ended up in `out`.
struct Span {
  size_t offset, size;
};
Result<Span> AppendEnvelope(std::string_view api_version, std::string_view kind, std::string_view object,
                            std::optional<int64_t> revision, std::string& out);

// Field `number` of type bytes or string.
void AppendBytes(int number, std::string_view bytes, std::string& out);

}  // namespace keelson::storage

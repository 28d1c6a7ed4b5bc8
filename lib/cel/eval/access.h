// Selecting fields, indexing, and asking for presence.
#pragma once

#include "lib/cel/values/value.h"

namespace keelson::cel {

enum class Access { kFound, kMissing, kFailed };

// The element of a map, object or list at `key`. kFailed: `out` is the error. Of an optional, that inside it.
Access FindElement(const Value& container, const Value& key, Value& out, Arena& arena);

// container.key or container[key]: an error when it is missing; of an optional, an optional.
Value GetElement(const Value& container, const Value& key, Arena& arena);

// container.?key or container[?key].
Value GetOptional(const Value& container, const Value& key, Arena& arena);

Value HasField(const Value& container, const Value& key, Arena& arena);

}  // namespace keelson::cel

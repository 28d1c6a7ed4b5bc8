// A map that has a value for every key.
#pragma once

#include "lib/cel/values/containers.h"

namespace keelson::cel {

// Absent keys read as an empty map. `in`, sizes and comprehensions know the present ones only.
class DefaultMap : public HashMap {
 public:
  bool Find(const Value& key, Value& out, Arena& arena) const override {
    if (!HashMap::Find(key, out, arena)) out = Value::Map(arena.New<HashMap>());
    return true;
  }
  bool Contains(const Value& key, Arena& arena) const {
    Value found;
    return HashMap::Find(key, found, arena);
  }
};

}  // namespace keelson::cel

#include "lib/cel/eval/access.h"

#include <cmath>

#include <fmt/format.h>

namespace keelson::cel {
namespace {

// The position that a number names in a list.
bool ToIndex(const Value& key, int64_t& index, Value& error, Arena& arena) {
  switch (key.kind()) {
    case ValueKind::kInt:
      index = key.as_int();
      return true;
    case ValueKind::kUint:
      index = key.as_uint() > INT64_MAX ? -1 : key.as_int();
      return true;
    case ValueKind::kDouble:
      if (std::floor(key.as_double()) == key.as_double() && std::fabs(key.as_double()) < 9007199254740992.0) {
        index = static_cast<int64_t>(key.as_double());
        return true;
      }
      error = Value::Error(fmt::format("unsupported index value {} in list", ToText(key)), arena);
      return false;
    default:
      error = Value::Error(fmt::format("unsupported index type '{}' in list", TypeName(key)), arena);
      return false;
  }
}

Value Missing(const Value& container, const Value& key, Arena& arena) {
  std::string_view what = container.Is(ValueKind::kList) ? "index out of bounds" : "no such key";
  return Value::Error(fmt::format("{}: {}", what, ToText(key)), arena);
}

}  // namespace

Access FindElement(const Value& container, const Value& key, Value& out, Arena& arena) {
  switch (container.kind()) {
    case ValueKind::kMap:
    case ValueKind::kObject:
      if (!container.map().Find(key, out, arena)) return Access::kMissing;
      return out.IsError() ? Access::kFailed : Access::kFound;
    case ValueKind::kList: {
      int64_t index = 0;
      if (!ToIndex(key, index, out, arena)) return Access::kFailed;
      if (index < 0 || static_cast<uint64_t>(index) >= container.list().Size()) return Access::kMissing;
      out = container.list().At(static_cast<size_t>(index), arena);
      return out.IsError() ? Access::kFailed : Access::kFound;
    }
    case ValueKind::kOptional:
      return container.has_value() ? FindElement(container.inner(), key, out, arena) : Access::kMissing;
    case ValueKind::kError:
      out = container;
      return Access::kFailed;
    default:
      return Access::kMissing;
  }
}

Value GetElement(const Value& container, const Value& key, Arena& arena) {
  if (container.Is(ValueKind::kOptional)) return GetOptional(container, key, arena);
  Value out;
  return FindElement(container, key, out, arena) == Access::kMissing ? Missing(container, key, arena) : out;
}

Value GetOptional(const Value& container, const Value& key, Arena& arena) {
  Value out;
  switch (FindElement(container, key, out, arena)) {
    case Access::kFound:
      return out.Is(ValueKind::kOptional) ? out : Value::Some(out, arena);
    case Access::kMissing:
      return Value::None();
    case Access::kFailed:
      break;
  }
  return out;
}

Value HasField(const Value& container, const Value& key, Arena& arena) {
  Value out;
  Access access = FindElement(container, key, out, arena);
  return access == Access::kFailed ? out : Value::Bool(access == Access::kFound);
}

}  // namespace keelson::cel

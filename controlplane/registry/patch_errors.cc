#include "controlplane/registry/patch_errors.h"

#include <fmt/format.h>

namespace keelson::registry {
namespace {

// The Go type that holds a JSON value.
std::string_view HeldAs(std::string_view value) {
  if (value.starts_with("number")) {
    return value.find_first_of(".eE", 6) == std::string_view::npos ? "int64" : "float64";
  }
  if (value == "object") return "map";
  if (value == "array") return "slice";
  return value;
}

bool IsScalar(std::string_view type) {
  return type == "string" || type == "bool" || type == "int32" || type == "int64" || type == "float64";
}

}  // namespace

std::string ConverterWords(std::string_view message) {
  constexpr std::string_view kStart = "json: cannot unmarshal ", kInto = " into Go ", kType = " of type ";
  const size_t into = message.find(kInto), type_at = message.rfind(kType);
  if (!message.starts_with(kStart) || into == std::string_view::npos || type_at == std::string_view::npos ||
      type_at < into) {
    return std::string(message);
  }
  const std::string_view from = HeldAs(message.substr(kStart.size(), into - kStart.size()));
  const std::string_view to = message.substr(type_at + kType.size());
  if (to.starts_with("map[")) return fmt::format("cannot restore map from {}", from);
  if (to.starts_with("[]")) return fmt::format("cannot restore slice from {}", from);
  if (!IsScalar(to)) return fmt::format("cannot restore struct from: {}", from);
  // Go converts between numbers, and whole numbers to strings; the JSON decoder does not.
  const bool number = from == "int64" || from == "float64";
  if ((number && to != "string" && to != "bool") || (from == "int64" && to == "string")) {
    return fmt::format("cannot convert {} to {}", from, to);
  }
  return fmt::format("unrecognized type: {}", to);
}

}  // namespace keelson::registry

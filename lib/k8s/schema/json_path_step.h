// Internal to lib/k8s: the steps of a JSON path, and their parser.
#pragma once

#include <optional>

#include "lib/k8s/schema/json_path.h"

namespace keelson::k8s {

struct JsonPath::Step {
  enum class Kind {
    kField,      // .name
    kWildcard,   // .* (also of lists)
    kRecursive,  // ..
    kSlice,      // [begin:end:stride]; [*] takes all
    kFilter,     // [?(left op right)], or [?(left)]
    kUnion       // [path,path]
  };

  Kind kind = Kind::kField;
  std::string name;
  std::optional<int64_t> begin, end, stride;
  bool end_is_derived = false;  // [begin]
  std::vector<Step> left, right;
  std::string op;                             // empty: whether there is anything at `left`
  std::optional<boost::json::value> literal;  // instead of `right`
  std::vector<std::vector<Step>> paths;
};

// kInvalid, in the words of client-go's parser.
Result<std::vector<JsonPath::Step>> ParseJsonPath(std::string_view path);

}  // namespace keelson::k8s

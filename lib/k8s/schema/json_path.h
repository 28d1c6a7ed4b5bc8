// JSON paths as printer columns, the scale subresource and selectable fields of custom resources use them: a subset
// of client-go's util/jsonpath.
//
//   .spec.replicas   .metadata.annotations['example\.com/a']   .status.conditions[?(@.type=="Ready")].status
//   .spec.ports[0].port   .spec.ports[-1:]   .spec.ports[*].name   ..name
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include "lib/base/error.h"

namespace keelson::k8s {

// Immutable and thread safe.
class JsonPath {
 public:
  // `path`: without braces. kInvalid for a path that upstream refuses, in its words, or that is outside of the
  // subset.
  static Result<JsonPath> Parse(std::string_view path);

  JsonPath(JsonPath&&) noexcept;
  JsonPath& operator=(JsonPath&&) noexcept;
  ~JsonPath();

  // The values that the path leads to, in order; none for missing fields. The pointers are parts of `object`.
  std::vector<const boost::json::value*> Find(const boost::json::value& object) const;
  // The first of Find(), or null.
  const boost::json::value* First(const boost::json::value& object) const;

  struct Step;

 private:
  JsonPath();

  std::vector<Step> steps_;
};

// A value as Go's fmt.Sprint prints it: text as it is, numbers and booleans as in JSON, `map[a:1]`, `[1 2]`, `<nil>`.
std::string GoText(const boost::json::value& value);

// The cell of an additional printer column, as JSON: a number for integer and number, true or false for boolean, an
// age (5m, <unknown>) for date with `now_seconds` as the present, otherwise text. Null for missing values and values
// of another type. `type`: the column's.
boost::json::value PrinterCell(const JsonPath& path, std::string_view type, const boost::json::value& object,
                               int64_t now_seconds);

}  // namespace keelson::k8s

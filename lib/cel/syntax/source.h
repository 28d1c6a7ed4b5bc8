// The text of an expression, and problems at places in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::cel {

inline constexpr uint32_t kNoPosition = UINT32_MAX;

struct Issue {
  uint32_t position = kNoPosition;  // byte offset in the expression
  std::string message;
};

size_t CountCodePoints(std::string_view text);  // an invalid byte counts as one

// All issues in upstream's form, in the order of their places, one after the other:
//   ERROR: <input>:1:6: undeclared reference to 'x' (in container '')
//    | 1 + x
//    | .....^
std::string DisplayIssues(std::string_view expression, std::vector<Issue> issues);

}  // namespace keelson::cel

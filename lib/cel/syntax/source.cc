#include "lib/cel/syntax/source.h"

#include <algorithm>

#include <fmt/format.h>

namespace keelson::cel {
namespace {

constexpr size_t kMostIssues = 100;

size_t CharacterLength(std::string_view text) {
  size_t length = 1;
  while (length < text.size() && length < 4 && (static_cast<uint8_t>(text[length]) & 0xC0) == 0x80) ++length;
  return static_cast<uint8_t>(text[0]) < 0xC0 ? 1 : length;
}

std::string Display(std::string_view expression, const Issue& issue) {
  if (issue.position == kNoPosition) return fmt::format("ERROR: <input>:-1:0: {}", issue.message);
  size_t position = std::min<size_t>(issue.position, expression.size());
  std::string_view before = expression.substr(0, position);
  size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  std::string line(expression.substr(line_start, expression.find('\n', line_start) - line_start));
  std::replace(line.begin(), line.end(), '\t', ' ');
  size_t column = CountCodePoints(before.substr(line_start));
  std::string marker;
  std::string_view rest = line;
  for (size_t i = 0; i < column && !rest.empty(); ++i) {
    size_t length = CharacterLength(rest);
    marker += length > 1 ? "．" : ".";
    rest.remove_prefix(length);
  }
  marker += !rest.empty() && CharacterLength(rest) > 1 ? "＾" : "^";
  auto number = std::count(before.begin(), before.end(), '\n') + 1;
  return fmt::format("ERROR: <input>:{}:{}: {}\n | {}\n | {}", number, column + 1, issue.message, line,
                     marker);
}

}  // namespace

size_t CountCodePoints(std::string_view text) {
  size_t count = 0;
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(CharacterLength(rest))) ++count;
  return count;
}

std::string DisplayIssues(std::string_view expression, std::vector<Issue> issues) {
  std::stable_sort(issues.begin(), issues.end(), [](const Issue& a, const Issue& b) {
    return a.position + 1 < b.position + 1;  // those without a place first
  });
  std::string out;
  for (size_t i = 0; i < issues.size(); ++i) {
    if (i == kMostIssues) {
      out += fmt::format("\n{} more errors were truncated", issues.size() - kMostIssues);
      break;
    }
    if (i > 0) out += '\n';
    out += Display(expression, issues[i]);
  }
  return out;
}

}  // namespace keelson::cel

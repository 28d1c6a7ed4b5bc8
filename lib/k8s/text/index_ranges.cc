#include "lib/k8s/text/index_ranges.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "lib/k8s/field_error.h"

namespace keelson::k8s {

namespace {

std::optional<int32_t> ParseIndex(std::string_view text) {
  int32_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

Error NoInteger(std::string_view text) {
  return Error(Code::kInvalid, fmt::format("cannot convert string to integer for index: {}", Quote(text)));
}

Result<std::pair<int32_t, int32_t>> ParseRange(std::string_view text, int32_t completions) {
  const size_t dash = text.find('-');
  if (dash != std::string_view::npos && text.find('-', dash + 1) != std::string_view::npos) {
    return Error(
        Code::kInvalid,
        fmt::format("the fragment {} violates the requirement that an index interval can have at most "
                    "two parts separated by '-'",
                    Quote(text)));
  }
  const std::string_view low = text.substr(0, dash);
  const std::optional<int32_t> first = ParseIndex(low);
  if (!first) return NoInteger(low);
  if (*first >= completions) return Error(Code::kInvalid, fmt::format("too large index: {}", Quote(low)));
  if (dash == std::string_view::npos) return std::pair(*first, *first);
  const std::string_view high = text.substr(dash + 1);
  const std::optional<int32_t> last = ParseIndex(high);
  if (!last) return NoInteger(high);
  if (*last >= completions) return Error(Code::kInvalid, fmt::format("too large index: {}", Quote(high)));
  if (*first >= *last) {
    return Error(Code::kInvalid,
                 fmt::format("non-increasing order, previous: {}, current: {}", *first, *last));
  }
  return std::pair(*first, *last);
}

}  // namespace

Result<IndexRanges> ParseIndexRanges(std::string_view text, int32_t completions) {
  IndexRanges out;
  if (text.empty()) return out;
  for (;;) {
    const size_t comma = text.find(',');
    KEELSON_ASSIGN_OR_RETURN(const auto range, ParseRange(text.substr(0, comma), completions));
    if (!out.empty() && out.back().second >= range.first) {
      return Error(Code::kInvalid, fmt::format("non-increasing order, previous: {}, current: {}",
                                               out.back().second, range.first));
    }
    out.push_back(range);
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

int64_t CountIndexes(const IndexRanges& ranges) {
  int64_t count = 0;
  for (const auto& [first, last] : ranges) count += int64_t{last} - first + 1;
  return count;
}

std::optional<int32_t> FirstOverlap(const IndexRanges& a, const IndexRanges& b) {
  size_t i = 0;
  for (const auto& range : b) {
    while (i < a.size() && a[i].second < range.first) ++i;
    if (i < a.size() && a[i].first <= range.second) return std::max(a[i].first, range.first);
  }
  return std::nullopt;
}

}  // namespace keelson::k8s

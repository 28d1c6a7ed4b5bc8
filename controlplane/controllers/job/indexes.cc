#include "controlplane/controllers/job/indexes.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace keelson::controllers {
namespace {

std::optional<int32_t> ParseIndex(std::string_view text) {
  int32_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value < 0) {
    return std::nullopt;
  }
  return value;
}

// Ranges are sorted by their start.
void Append(IndexRanges& ranges, std::pair<int32_t, int32_t> range) {
  if (ranges.empty() || range.first > ranges.back().second + 1) {
    ranges.push_back(range);
  } else {
    ranges.back().second = std::max(ranges.back().second, range.second);
  }
}

}  // namespace

IndexRanges IndexesBelow(std::string_view text, int32_t completions) {
  IndexRanges out;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t dash = part.find('-');
    const std::optional<int32_t> first = ParseIndex(part.substr(0, dash));
    const std::optional<int32_t> last =
        dash == std::string_view::npos ? first : ParseIndex(part.substr(dash + 1));
    if (!first || !last || *first > *last) continue;
    if (*first >= completions) break;
    Append(out, {*first, std::min(*last, completions - 1)});
  }
  return out;
}

std::string FormatIndexes(const IndexRanges& ranges) {
  std::string out;
  for (const auto& [first, last] : ranges) {
    if (!out.empty()) out += ',';
    out += fmt::format("{}", first);
    if (last > first) out += fmt::format("{}{}", last == first + 1 ? ',' : '-', last);
  }
  return out;
}

bool Contains(const IndexRanges& ranges, int32_t index) {
  auto it = std::partition_point(ranges.begin(), ranges.end(),
                                 [&](const auto& range) { return range.second < index; });
  return it != ranges.end() && it->first <= index;
}

IndexRanges With(const IndexRanges& ranges, const std::set<int32_t>& indexes) {
  IndexRanges more;
  for (int32_t index : indexes) Append(more, {index, index});
  return Union(ranges, more);
}

IndexRanges Union(const IndexRanges& a, const IndexRanges& b) {
  IndexRanges out;
  for (auto i = a.begin(), j = b.begin(); i != a.end() || j != b.end();) {
    const bool from_a = j == b.end() || (i != a.end() && i->first < j->first);
    Append(out, from_a ? *i++ : *j++);
  }
  return out;
}

int64_t CountCommon(const IndexRanges& a, const IndexRanges& b) {
  int64_t count = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    const int64_t first = std::max(i->first, j->first), last = std::min(i->second, j->second);
    if (first <= last) count += last - first + 1;
    if (i->second < j->second) {
      ++i;
    } else {
      ++j;
    }
  }
  return count;
}

std::vector<int32_t> FirstFree(const IndexRanges& taken, size_t count, int32_t completions) {
  std::vector<int32_t> out;
  int32_t next = 0;
  const auto take_below = [&](int32_t end) {
    for (; next < end && out.size() < count; ++next) out.push_back(next);
  };
  for (const auto& [first, last] : taken) {
    take_below(std::min(first, completions));
    next = std::max(next, last + 1);
  }
  take_below(completions);
  return out;
}

}  // namespace keelson::controllers

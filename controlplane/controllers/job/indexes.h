// Sets of completion indexes, as sorted ranges that neither touch nor overlap.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "lib/k8s/text/index_ranges.h"

namespace keelson::controllers {

using k8s::IndexRanges;

// Parses the indexes of a Job status. Skips parts that cannot be parsed, and indexes at or above
// `completions` (which may have been lowered).
IndexRanges IndexesBelow(std::string_view text, int32_t completions);
std::string FormatIndexes(const IndexRanges& ranges);  // "1,3-5,7"
bool Contains(const IndexRanges& ranges, int32_t index);
IndexRanges With(const IndexRanges& ranges, const std::set<int32_t>& indexes);
IndexRanges Union(const IndexRanges& a, const IndexRanges& b);
// The number of indexes in both sets.
int64_t CountCommon(const IndexRanges& a, const IndexRanges& b);
// The smallest indexes below `completions` that are not in `taken`; at most `count`.
std::vector<int32_t> FirstFree(const IndexRanges& taken, size_t count, int32_t completions);

}  // namespace keelson::controllers

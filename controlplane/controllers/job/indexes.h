// Sets of completion indexes of Jobs, as ranges in increasing order that neither touch nor overlap.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "lib/k8s/text/index_ranges.h"

namespace keelson::controllers {

using k8s::IndexRanges;

// Of a status that a controller wrote: parts that cannot be read are left out, and what is not below
// `completions`, which may have become fewer.
IndexRanges IndexesBelow(std::string_view text, int32_t completions);
std::string FormatIndexes(const IndexRanges& ranges);  // "1,3-5,7"
bool Contains(const IndexRanges& ranges, int32_t index);
IndexRanges With(const IndexRanges& ranges, const std::set<int32_t>& indexes);
IndexRanges Union(const IndexRanges& a, const IndexRanges& b);
int64_t CountCommon(const IndexRanges& a, const IndexRanges& b);
// The smallest indexes below `completions` that are not in `taken`, `count` at most.
std::vector<int32_t> FirstFree(const IndexRanges& taken, size_t count, int32_t completions);

}  // namespace keelson::controllers

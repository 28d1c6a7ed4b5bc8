// Sets of completion indexes of Jobs in text form: "1,3-5,7", increasing, below the number of completions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"

namespace keelson::k8s {

using IndexRanges = std::vector<std::pair<int32_t, int32_t>>;  // both ends included

// kInvalid, in upstream's words. Empty text is the empty set.
Result<IndexRanges> ParseIndexRanges(std::string_view text, int32_t completions);
int64_t CountIndexes(const IndexRanges& ranges);
// The smallest index in both sets; nullopt: they do not overlap.
std::optional<int32_t> FirstOverlap(const IndexRanges& a, const IndexRanges& b);

}  // namespace keelson::k8s

// Sets of completion indexes of Jobs as they are written: "1,3-5,7", increasing, below the completions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"

namespace keelson::k8s {

using IndexRanges = std::vector<std::pair<int32_t, int32_t>>;  // both ends included

// kInvalid in upstream's words. Empty text is the empty set.
Result<IndexRanges> ParseIndexRanges(std::string_view text, int32_t completions);
int64_t CountIndexes(const IndexRanges& ranges);
// The smallest index that is in both.
std::optional<int32_t> FirstOverlap(const IndexRanges& a, const IndexRanges& b);

}  // namespace keelson::k8s

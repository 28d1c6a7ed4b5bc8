// What a checked expression may cost at most and at least, from the declared sizes of its variables. The rules are
// upstream's: they decide which rules a CustomResourceDefinition may have.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/cel/check/checker.h"
#include "lib/cel/types/decl_type.h"

namespace keelson::cel {

// A range of costs or sizes; sums and products stop at the largest number.
struct Range64 {
  uint64_t min = 0, max = 0;
};

// `variables`: declared types by index of the declarations; null for variables of unknown shape.
Range64 EstimateCost(const Ast& ast, const Checked& checked, const std::vector<const DeclType*>& variables);

}  // namespace keelson::cel

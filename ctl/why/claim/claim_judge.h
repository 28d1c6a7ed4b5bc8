// Finds what keeps a claim from being bound, used, expanded or deleted. Pure.
#pragma once

#include <vector>

#include "ctl/problem.h"
#include "ctl/why/claim/claim_view.h"
#include "ctl/why/why_report.h"

namespace keelson::ctl {

WhyReport JudgeClaim(const ClaimView& view);
// The parts of it: why there is no volume; what is wrong with the volume that there is.
std::vector<Problem> JudgeBinding(const ClaimView& view);
std::vector<Problem> JudgeUse(const ClaimView& view);
// The commands that show more, by the reason of a problem.
std::vector<std::string> NextForClaim(const ClaimView& view, const std::string& reason);

}  // namespace keelson::ctl

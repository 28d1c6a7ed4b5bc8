// Finds what keeps a claim from being bound, used, expanded or deleted. Pure.
#pragma once

#include <string>
#include <vector>

#include <boost/json/value.hpp>

#include "ctl/problem.h"
#include "ctl/why/claim_view.h"

namespace keelson::ctl {

struct ClaimReport {
  std::string claim, phase, storage_class, volume;
  std::vector<std::string> pods;  // that use it
  std::vector<Problem> problems;
};

ClaimReport JudgeClaim(const ClaimView& view);
// The parts of it: why there is no volume; what is wrong with the volume that there is.
std::vector<Problem> JudgeBinding(const ClaimView& view);
std::vector<Problem> JudgeUse(const ClaimView& view);

// For programs, and for people.
boost::json::value ToDocument(const ClaimReport& report);
std::string WhyClaimText(const ClaimReport& report);

}  // namespace keelson::ctl

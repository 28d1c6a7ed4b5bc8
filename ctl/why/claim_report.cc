#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "ctl/why/claim_judge.h"

namespace keelson::ctl {

namespace json = boost::json;

json::value ToDocument(const ClaimReport& report) {
  json::array pods(report.pods.begin(), report.pods.end()), problems;
  for (const Problem& one : report.problems) {
    problems.push_back({{"reason", one.reason}, {"message", one.message}});
  }
  return {{"claim", report.claim},   {"phase", report.phase}, {"storageClass", report.storage_class},
          {"volume", report.volume}, {"pods", pods},          {"problems", problems}};
}

std::string WhyClaimText(const ClaimReport& report) {
  std::string out = fmt::format("Claim {} is {}", report.claim, report.phase.empty() ? "new" : report.phase);
  if (!report.storage_class.empty()) out += ", of class " + report.storage_class;
  if (!report.volume.empty()) out += ", with volume " + report.volume;
  if (!report.pods.empty()) out += fmt::format(", used by pod {}", fmt::join(report.pods, ", "));
  out += "\n";
  if (!report.problems.empty()) out += "\n";
  for (const Problem& one : report.problems) out += "  " + one.reason + ": " + one.message + "\n";
  return out;
}

}  // namespace keelson::ctl

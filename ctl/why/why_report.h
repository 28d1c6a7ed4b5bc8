// What a `nodectl why` has found, and how it is printed. All of them share it. Pure.
#pragma once

#include <string>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "ctl/problem.h"

namespace keelson::ctl {

struct WhyReport {
  std::string headline;                 // "Claim default/data is Pending, of class local"
  boost::json::object facts;            // for programs: stand before the problems
  std::vector<Problem> problems;        // each with its own reason; the likeliest cause of all comes first
  std::vector<std::string> notes = {};  // no problems, but worth knowing
};

// For programs, and for people: the headline, then each problem with its evidence and the next step.
boost::json::value ToDocument(const WhyReport& report);
std::string WhyText(const WhyReport& report);

// The exit code of the verb.
int ExitCode(const WhyReport& report);

}  // namespace keelson::ctl

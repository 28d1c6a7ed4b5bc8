#include "ctl/why/why_report.h"

#include <boost/json/array.hpp>

#include "ctl/verb.h"
#include "lib/base/text.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

json::array Strings(const std::vector<std::string>& items) { return json::array(items.begin(), items.end()); }

// A line of its own for each line of the text.
void AddLines(const std::string& begin, const std::string& text, std::string& out) {
  for (const std::string_view line : Split(TrimRight(text), '\n')) {
    out += begin;
    out += line;
    out += "\n";
  }
}

}  // namespace

json::value ToDocument(const WhyReport& report) {
  json::object out = report.facts;
  json::array problems;
  for (const Problem& one : report.problems) {
    json::object problem{{"reason", one.reason}, {"message", one.message}};
    if (!one.evidence.empty()) problem["evidence"] = Strings(one.evidence);
    if (!one.next.empty()) problem["next"] = Strings(one.next);
    problems.push_back(std::move(problem));
  }
  out["problems"] = std::move(problems);
  if (!report.notes.empty()) out["notes"] = Strings(report.notes);
  return out;
}

std::string WhyText(const WhyReport& report) {
  std::string out = report.headline + "\n";
  for (const Problem& one : report.problems) {
    out += "\n  " + one.reason + ": " + one.message + "\n";
    for (const std::string& line : one.evidence) AddLines("    ", line, out);
    for (const std::string& command : one.next) AddLines("    next: ", command, out);
  }
  if (!report.notes.empty()) out += "\n";
  for (const std::string& note : report.notes) AddLines("  note: ", note, out);
  return out;
}

int ExitCode(const WhyReport& report) { return report.problems.empty() ? 0 : kFoundProblems; }

}  // namespace keelson::ctl

// Where the verbs that set up machines write what they do, and their document at the end:
//
//   -o table         progress on standard output, warnings on standard error
//   -o json, yaml    standard output is one document, also where the verb fails; the rest goes to standard error
//   --progress json  progress and warnings are lines of JSON (phase_log.h), where progress would be text
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <string>

#include "ctl/phases/phase_log.h"
#include "ctl/verb.h"

namespace CLI {
class App;
}

namespace keelson::ctl {

void AddProgressFlag(CLI::App& verb, std::string& form);  // "text" or "json"

class VerbReport {
 public:
  VerbReport(const Settings& settings, const std::string& progress);

  bool has_document() const { return format_ != OutputFormat::kTable; }
  std::ostream& out() { return *out_; }
  std::ostream& err() { return *err_; }
  PhaseLog& log() { return log_; }

  // Prints the document, where one is wanted: its kind, `fields`, phases where there were any, the time, and the error.
  void Finish(const char* kind, const boost::json::object& fields, const Result<>& done);

 private:
  const OutputFormat format_;
  std::ostream& progress_;  // std::cout or std::cerr
  PhaseLog log_;
  std::unique_ptr<LineStream> messages_, warnings_;
  std::ostream* out_;
  std::ostream* err_;
};

// What a verb does; it fills in fields of its document, as far as it gets.
using ReportedWork = std::function<Result<>(VerbReport& report, boost::json::object& fields)>;
// Runs it, and prints the document whatever the end is. The result is the exit code.
Result<int> RunReported(const Settings& settings, const char* kind, const std::string& progress,
                        const ReportedWork& work);
inline Result<int> RunReported(const Settings& settings, const char* kind, const ReportedWork& work) {
  return RunReported(settings, kind, "text", work);
}

// kInvalid where a program reads what the verb prints, and no person can answer a question. `flag` makes the question needless.
Result<> RefuseToAsk(const Settings& settings, const std::string& progress, const char* flag);

}  // namespace keelson::ctl

#include "ctl/setup/verb_report.h"

#include <CLI/CLI.hpp>
#include <iostream>

namespace keelson::ctl {
namespace {

constexpr char kReportVersion[] = "output.keelson.dev/v1alpha1";

}  // namespace

void AddProgressFlag(CLI::App& verb, std::string& form) {
  verb.add_option("--progress", form, "Form of progress: text, or json for a JSON object a line")
      ->check(CLI::IsMember({"text", "json"}));
}

VerbReport::VerbReport(const Settings& settings, const std::string& progress)
    : format_(settings.format()),
      progress_(has_document() ? std::cerr : std::cout),
      log_(progress == "json" ? &progress_ : nullptr),
      out_(&progress_),
      err_(&std::cerr) {
  std::cout << std::unitbuf;  // progress, also through a pipe
  if (progress != "json") return;
  messages_ = std::make_unique<LineStream>([this](std::string_view line) { log_.Message("message", line); });
  warnings_ = std::make_unique<LineStream>([this](std::string_view line) { log_.Message("warning", line); });
  out_ = messages_.get();
  err_ = warnings_.get();
}

void VerbReport::Finish(const char* kind, const boost::json::object& fields, const Result<>& done) {
  if (!has_document()) return;
  boost::json::object out{{"apiVersion", kReportVersion}, {"kind", kind}};
  for (const auto& [key, value] : fields) out[key] = value;
  if (!log_.phases().empty()) out["phases"] = log_.phases();
  out["seconds"] = log_.seconds();
  if (!done) out["error"] = done.error().message();
  std::cout << (format_ == OutputFormat::kJson ? ToJson(out) : ToYaml(out)) << std::flush;
}

Result<int> RunReported(const Settings& settings, const char* kind, const std::string& progress,
                        const ReportedWork& work) {
  VerbReport report(settings, progress);
  boost::json::object fields;
  const Result<> done = work(report, fields);
  report.Finish(kind, fields, done);
  if (!done) return done.error();
  return 0;
}

Result<> RefuseToAsk(const Settings& settings, const std::string& progress, const char* flag) {
  if (settings.format() == OutputFormat::kTable && progress != "json") return {};
  return Error(Code::kInvalid, std::string("whoever reads JSON or YAML cannot be asked: give ") + flag);
}

}  // namespace keelson::ctl

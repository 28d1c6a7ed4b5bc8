// nodectl why job NAMESPACE/NAME
#include <CLI/CLI.hpp>

#include "ctl/inspect_verbs.h"
#include "ctl/why/job/job_judge.h"

namespace keelson::ctl {
namespace {

// A Job, or else a CronJob of this name.
Result<WhyReport> Explain(const client::RestClient& api, const ObjectName& name) {
  const WallTime now = Clock::Real().Now();
  const Result<JobView> job = ReadJob(api, name.ns, name.name, now);
  if (job) return JudgeJob(*job);
  if (!job.error().Is(Code::kNotFound)) return job.error();
  const Result<CronJobView> cron = ReadCronJob(api, name.ns, name.name, now);
  if (cron) return JudgeCronJob(*cron);
  if (!cron.error().Is(Code::kNotFound)) return cron.error();
  return Error(Code::kNotFound, "there is no Job and no CronJob " + name.Text());
}

Result<int> WhyJob(const std::string& job, const Settings& settings) {
  KEELSON_ASSIGN_OR_RETURN(const ObjectName name, ParseObjectName(job));
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, ConnectApi(settings));
  KEELSON_ASSIGN_OR_RETURN(const WhyReport report, Explain(api, name));
  PrintAnswer(settings, WhyText(report), ToDocument(report));
  return ExitCode(report);
}

}  // namespace

void AddWhyJob(CLI::App& parent, Run& chosen) {
  auto job = std::make_shared<std::string>();
  CLI::App* verb = parent.add_subcommand(
      "job",
      "what keeps a Job from completing, or a CronJob from starting Jobs; exit code 2: something does");
  verb->add_option("job", *job, "NAMESPACE/NAME of a Job or a CronJob")->required();
  verb->callback(
      [job, &chosen] { chosen = [job](const Settings& settings) { return WhyJob(*job, settings); }; });
}

}  // namespace keelson::ctl

// Jobs and CronJobs.
#include <gtest/gtest.h>

#include "lib/k8s/testing/rules.h"

namespace keelson::k8s {
namespace {

constexpr char kTemplate[] =
    R"("template":{"metadata":{"labels":{"batch.kubernetes.io/controller-uid":"u","batch.kubernetes.io/job-name":"j",)"
    R"("controller-uid":"u","job-name":"j"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}})";

// A Job as the registry prepares it. `spec`: fields with a trailing comma.
std::string Job(const std::string& spec, const std::string& status = "") {
  return R"({"metadata":{"name":"j","namespace":"default","uid":"u"},"spec":{)" + spec +
         R"("selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"u"}},)" + kTemplate + "}" +
         (status.empty() ? "" : R"(,"status":{)" + status + "}") + "}";
}

TEST(ValidateJob, Numbers) {
  ExpectErrors(
      "batch/v1", "Job",
      {
          {Job(R"("parallelism":2,"completions":3,"backoffLimit":1,)"), {}},
          {Job(R"("parallelism":-1,"ttlSecondsAfterFinished":-1,)"),
           {"spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
            "spec.ttlSecondsAfterFinished: Invalid value: -1: must be greater than or equal to 0"}},
          {Job(R"("completionMode":"Indexed","parallelism":1,)"),
           {"spec.completions: Required value: when completion mode is Indexed"}},
          {Job(R"("completions":1,"backoffLimitPerIndex":1,)"),
           {"spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"}},
          {Job(R"("managedBy":"me",)"),
           {R"(spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo"))"}},
          {Job(R"("podReplacementPolicy":"Later",)"),
           {R"(spec.podReplacementPolicy: Unsupported value: "Later": supported values: "Failed", )"
            R"("TerminatingOrFailed")"}},
      });
}

TEST(ValidateJob, Policies) {
  auto failure = [](const std::string& rule) {
    return Job(R"("podFailurePolicy":{"rules":[{)" + rule + "}]},");
  };
  auto success = [](const std::string& rule) {
    return Job(R"("completions":5,"completionMode":"Indexed","successPolicy":{"rules":[{)" + rule + "}]},");
  };
  ExpectErrors(
      "batch/v1", "Job",
      {
          {failure(
               R"("action":"FailJob","onExitCodes":{"containerName":"c","operator":"In","values":[1,2]})"),
           {}},
          {failure(R"("action":"FailJob","onExitCodes":{"operator":"In","values":[0]})"),
           {"spec.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the "
            "In "
            "operator"}},
          {failure(R"("action":"FailJob","onExitCodes":{"operator":"In","values":[2,1]})"),
           {"spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [2,1]: must be ordered"}},
          {failure(R"("action":"FailIndex","onPodConditions":[{"type":"T"}])"),
           {R"(spec.podFailurePolicy.rules[0].action: Invalid value: "FailIndex": requires the )"
            "backoffLimitPerIndex to be set"}},
          {success(R"("succeededIndexes":"0-2","succeededCount":1)"), {}},
          {success(R"("succeededIndexes":"0-2","succeededCount":4)"),
           {"spec.successPolicy.rules[0].succeededCount: Invalid value: 4: must be less than or equal to 3 "
            "(the number of indexes in the specified succeededIndexes field)"}},
          {success(R"("succeededIndexes":"7")"),
           {R"(spec.successPolicy.rules[0].succeededIndexes: Invalid value: "7": error parsing )"
            R"(succeededIndexes: too large index: "7")"}},
          {success(""),
           {"spec.successPolicy.rules[0]: Required value: at least one of succeededCount or "
            "succeededIndexes must be specified"}},
      });
}

TEST(ValidateJob, Updates) {
  ExpectUpdateErrors("batch/v1", "Job", "",
                     {
                         {Job(R"("parallelism":1,)"), Job(R"("parallelism":2,)"), {}},
                         {Job(R"("completions":1,)"),
                          Job(R"("completions":2,)"),
                          {"spec.completions: Invalid value: 2: field is immutable"}},
                         // The completions of an indexed Job may change together with its parallelism.
                         {Job(R"("completions":2,"parallelism":2,"completionMode":"Indexed",)"),
                          Job(R"("completions":3,"parallelism":3,"completionMode":"Indexed",)"),
                          {}},
                         {Job(""),
                          Job(R"("backoffLimitPerIndex":1,"completionMode":"Indexed","completions":1,)"),
                          {R"(spec.completionMode: Invalid value: "Indexed": field is immutable)",
                           "spec.backoffLimitPerIndex: Invalid value: 1: field is immutable"}},
                     });
}

TEST(ValidateJob, Status) {
  ExpectUpdateErrors(
      "batch/v1", "Job", "status",
      {
          {Job(""), Job("", R"("active":1,"startTime":"2026-01-01T00:00:00Z")"), {}},
          {Job(""),
           Job("", R"("active":-1)"),
           {"status.active: Invalid value: -1: must be greater than or equal to 0"}},
          {Job(""),
           Job("", R"("conditions":[{"type":"Complete","status":"True"}])"),
           {"status.completionTime: Required value: completionTime is required for Complete jobs",
            "status.conditions: Invalid value: cannot set Complete=True condition without the "
            "SuccessCriteriaMet=true condition",
            "status.startTime: Required value: startTime is required for finished job"}},
          {Job("", R"("startTime":"2026-01-01T00:00:00Z")"),
           Job("", R"("startTime":"2026-01-02T00:00:00Z")"),
           {"status.startTime: Required value: startTime cannot be modified for unsuspended job"}},
          {Job("", R"("startTime":"2026-01-01T00:00:00Z")"),
           Job(""),
           {"status.startTime: Required value: startTime cannot be removed for unsuspended job"}},
          {Job(""),
           Job("", R"("active":1,"ready":2)"),
           {"status.ready: Invalid value: 2: cannot set more ready pods than active"}},
          {Job("", R"("failed":2)"),
           Job("", R"("failed":1)"),
           {"status.failed: Invalid value: 1: cannot decrease the failed counter"}},
      },
      /*self=*/false);
}

TEST(ValidateCronJob, Schedules) {
  auto cron = [](const std::string& spec, const std::string& name = "c") {
    return R"({"metadata":{"name":")" + name + R"(","namespace":"default"},"spec":{)" + spec +
           R"("jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never",)"
           R"("containers":[{"name":"c","image":"i"}]}}}}}})";
  };
  ExpectErrors(
      "batch/v1", "CronJob",
      {
          {cron(R"("schedule":"*/5 * * * *","timeZone":"Europe/Berlin",)"), {}},
          {cron(R"("schedule":"whenever",)"),
           {R"(spec.schedule: Invalid value: "whenever": expected exactly 5 fields, found 1: [whenever])"}},
          {cron(R"("schedule":"@daily","timeZone":"Mars/Base",)"),
           {R"(spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base)"}},
          {cron(""), {"spec.schedule: Required value"}},
          {cron(R"("schedule":"@daily","concurrencyPolicy":"Queue",)"),
           {R"(spec.concurrencyPolicy: Unsupported value: "Queue": supported values: "Allow", "Forbid", )"
            R"("Replace")"}},
          {cron(R"("schedule":"@daily",)", std::string(53, 'a')),
           {"metadata.name: Invalid value: \"" + std::string(53, 'a') +
            "\": must be no more than 52 characters"}},
      });
}

}  // namespace
}  // namespace keelson::k8s

#include "controlplane/scheduler_config.h"

#include "controlplane/apiserver/request/yaml.h"
#include "controlplane/scheduler/config/document.h"
#include "lib/api/duration.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/component/document.h"

namespace keelson::controlplane {
namespace {

constexpr char kEmpty[] = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

Result<std::string> TextOf(const Options& options) {
  if (options.scheduler_config_file.empty()) return std::string(kEmpty);
  return ReadFile(options.scheduler_config_file);
}

// What the file has and no flag.
void TakeOver(const scheduler::LeaderElectionConfig& file, LeaderFlags& flags) {
  const auto take = [&](const char* flag, const auto& from, auto& to) {
    if (from && !flags.given.count(flag)) to = *from;
  };
  take("leader-elect", file.elect, flags.elect);
  take("leader-elect-lease-duration", file.lease_duration, flags.lease_duration);
  take("leader-elect-renew-deadline", file.renew_deadline, flags.renew_deadline);
  take("leader-elect-retry-period", file.retry_period, flags.retry_period);
  take("leader-elect-resource-name", file.resource_name, flags.resource_name);
  take("leader-elect-resource-namespace", file.resource_namespace, flags.resource_namespace);
}

void SetLeaderElection(const LeaderFlags& flags, boost::json::object& document) {
  boost::json::value& section = document["leaderElection"];
  boost::json::object& leader = section.is_object() ? section.get_object() : section.emplace_object();
  const auto time = [](std::chrono::nanoseconds value) { return api::FormatGoDuration(value.count()); };
  if (flags.elect) leader["leaderElect"] = *flags.elect;
  leader["leaseDuration"] = time(flags.lease_duration);
  leader["renewDeadline"] = time(flags.renew_deadline);
  leader["retryPeriod"] = time(flags.retry_period);
  leader["resourceName"] = flags.resource_name;
  leader["resourceNamespace"] = flags.resource_namespace;
}

}  // namespace

Result<SchedulerRole> ReadSchedulerRole(const Options& options) {
  SchedulerRole role{{}, options};
  KEELSON_ASSIGN_OR_RETURN(const std::string text, TextOf(options));
  KEELSON_ASSIGN_OR_RETURN(role.config, scheduler::ParseConfig(text));
  TakeOver(role.config.leader_election, role.options.leader);
  if (!role.config.kubeconfig.empty()) role.options.kubeconfig = role.config.kubeconfig;
  return role;
}

Result<> WriteSchedulerConfig(const Options& options) {
  KEELSON_ASSIGN_OR_RETURN(const SchedulerRole role, ReadSchedulerRole(options));
  KEELSON_ASSIGN_OR_RETURN(const std::string text, TextOf(options));
  component::DocumentProblems problems;
  KEELSON_ASSIGN_OR_RETURN(boost::json::object document, component::ParseDocument(text, problems));
  SetLeaderElection(role.options.leader, document);
  if (!role.options.kubeconfig.empty()) {
    boost::json::value& section = document["clientConnection"];
    if (!section.is_object()) section.emplace_object();
    section.get_object()["kubeconfig"] = role.options.kubeconfig;
  }
  const std::string written =
      apiserver::JsonToYaml(boost::json::serialize(scheduler::WithDefaults(std::move(document))));
  KEELSON_RETURN_IF_ERROR(WriteFileAtomic(options.write_config_to, written));
  log::Info("Wrote configuration", {{"file", options.write_config_to}});
  return {};
}

}  // namespace keelson::controlplane

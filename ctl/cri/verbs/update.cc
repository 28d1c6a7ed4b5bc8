// nodectl update, checkpoint
#include <iostream>

#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/verb.h"

namespace keelson::ctl {
namespace {

struct UpdateOptions {
  std::vector<std::string> ids;
  int64_t cpu_period = 0, cpu_quota = 0, cpu_share = 0, memory = 0, oom_score_adj = 0;
  std::string cpuset_cpus, cpuset_mems;
};

Result<int> Update(CriClient& client, const UpdateOptions& options) {
  return ForEachId(options.ids, [&](const std::string& id) -> Result<> {
    cri::UpdateContainerResourcesRequest request;
    request.set_container_id(id);
    cri::LinuxContainerResources& resources = *request.mutable_linux();
    resources.set_cpu_period(options.cpu_period);
    resources.set_cpu_quota(options.cpu_quota);
    resources.set_cpu_shares(options.cpu_share);
    resources.set_memory_limit_in_bytes(options.memory);
    resources.set_oom_score_adj(options.oom_score_adj);
    resources.set_cpuset_cpus(options.cpuset_cpus);
    resources.set_cpuset_mems(options.cpuset_mems);
    const auto reply = client.Call(&RuntimeStub::UpdateContainerResources, request);
    if (!reply) return reply.error().Wrap("updating container resources for \"" + id + "\"");
    std::cout << id << "\n";
    return {};
  });
}

struct CheckpointOptions {
  std::vector<std::string> ids;
  std::string archive;
};

Result<int> Checkpoint(CriClient& client, const CheckpointOptions& options) {
  return ForEachId(options.ids, [&](const std::string& id) -> Result<> {
    cri::CheckpointContainerRequest request;
    request.set_container_id(id);
    request.set_location(options.archive);
    const auto reply = client.Call(&RuntimeStub::CheckpointContainer, request);
    if (!reply) return reply.error().Wrap("checkpointing the container \"" + id + "\" failed");
    std::cout << id << "\n";
    return {};
  });
}

}  // namespace

void AddCriUpdate(const CriVerbs& verbs) {
  auto update = std::make_shared<UpdateOptions>();
  CLI::App* verb = verbs.Add("update", "Change resources of containers",
                             [update](CriClient& client) { return Update(client, *update); });
  verb->add_option("CONTAINER-ID", update->ids, "Ids, or beginnings of ids")->required();
  verb->add_option("--cpu-period", update->cpu_period,
                   "Period of the CPU limit in microseconds; 0: the default");
  verb->add_option("--cpu-quota", update->cpu_quota, "CPU time in each period, in microseconds");
  verb->add_option("--cpu-share", update->cpu_share, "Weight against other containers");
  verb->add_option("--memory", update->memory, "Limit of memory in bytes");
  verb->add_option("--cpuset-cpus", update->cpuset_cpus, "CPUs to use");
  verb->add_option("--cpuset-mems", update->cpuset_mems, "Memory nodes to use");
  verb->add_option("--oom-score-adj", update->oom_score_adj, "Score for the OOM killer");

  auto checkpoint = std::make_shared<CheckpointOptions>();
  CLI::App* archive = verbs.Add("checkpoint", "Write the state of running containers to an archive",
                                [checkpoint](CriClient& client) { return Checkpoint(client, *checkpoint); });
  archive->add_option("CONTAINER-ID", checkpoint->ids, "Ids, or beginnings of ids")->required();
  archive->add_option("-e,--export", checkpoint->archive, "The archive, /path/to/checkpoint.tar")->required();
}

}  // namespace keelson::ctl

// nodectl rm, rmp
#include <iostream>

#include "ctl/cri/containers.h"
#include "ctl/cri/lifecycle.h"
#include "ctl/cri/pods.h"
#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/verb.h"

namespace keelson::ctl {
namespace {

struct RemoveOptions {
  std::vector<std::string> ids;
  bool force = false, keep_logs = false, all = false;
};

// The given ids, or all of them; kInvalid when there are none.
template <typename Object>
Result<std::vector<std::string>> IdsToRemove(const RemoveOptions& options,
                                             const Result<std::vector<Object>>& every, const char* kind) {
  if (!options.all && options.ids.empty()) {
    return Error(Code::kInvalid, std::string("you must specify at least one ") + kind + " or use --all");
  }
  if (!options.all) return options.ids;
  if (!every) return every.error();
  std::vector<std::string> ids;
  for (const Object& object : *every) ids.push_back(object.id());
  return ids;
}

Result<int> RemoveContainers(CriClient& client, const RemoveOptions& options) {
  CriFilter every;
  every.all = true;
  const auto containers = options.all ? ListContainers(client, every) : std::vector<cri::Container>();
  KEELSON_ASSIGN_OR_RETURN(const std::vector<std::string> ids,
                           IdsToRemove(options, containers, "CONTAINER-ID"));
  return ForEachId(ids, [&](const std::string& id) {
    return RemoveContainer(client, id, options.force, options.keep_logs);
  });
}

Result<int> RemovePods(CriClient& client, const RemoveOptions& options) {
  const auto pods = options.all ? ListPods(client, {}) : std::vector<cri::PodSandbox>();
  KEELSON_ASSIGN_OR_RETURN(const std::vector<std::string> ids, IdsToRemove(options, pods, "POD-ID"));
  return ForEachId(ids, [&](const std::string& id) { return RemovePod(client, id, options.force); });
}

}  // namespace

void AddCriRemove(const CriVerbs& verbs) {
  auto containers = std::make_shared<RemoveOptions>();
  CLI::App* rm = verbs.Add("rm", "Remove containers",
                           [containers](CriClient& client) { return RemoveContainers(client, *containers); });
  AddIds(*rm, containers->ids, "CONTAINER-ID");
  rm->add_flag("-f,--force", containers->force, "Running ones too");
  rm->add_flag("-k,--keep-logs", containers->keep_logs, "Keep the log file and its rotations");
  rm->add_flag("-a,--all", containers->all, "All containers");
  auto pods = std::make_shared<RemoveOptions>();
  CLI::App* rmp =
      verbs.Add("rmp", "Remove pods", [pods](CriClient& client) { return RemovePods(client, *pods); });
  AddIds(*rmp, pods->ids, "POD-ID");
  rmp->add_flag("-f,--force", pods->force, "Running ones too");
  rmp->add_flag("-a,--all", pods->all, "All pods");
}

}  // namespace keelson::ctl

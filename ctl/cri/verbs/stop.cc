// nodectl start, stop, stopp
#include <iostream>

#include "ctl/cri/containers.h"
#include "ctl/cri/lifecycle.h"
#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/verb.h"

namespace keelson::ctl {
namespace {

struct StopOptions {
  std::vector<std::string> ids;
  int64_t grace_seconds = 0;
  bool all = false;
};

Result<int> StopContainers(CriClient& client, const StopOptions& options) {
  if (options.all && !options.ids.empty()) {
    return Error(Code::kInvalid, "cannot specify CONTAINER-ID(s) when using --all");
  }
  if (!options.all && options.ids.empty()) {
    return Error(Code::kInvalid, "you must specify at least one CONTAINER-ID or use --all");
  }
  std::vector<std::string> ids = options.ids;
  if (options.all) {
    const auto running = ListContainers(client, {});
    if (!running) return running.error().Wrap("listing containers");
    for (const cri::Container& container : *running) ids.push_back(container.id());
    if (ids.empty()) std::cout << "No running containers found.\n";
  }
  return ForEachId(ids,
                   [&](const std::string& id) { return StopContainer(client, id, options.grace_seconds); });
}

void AddSimple(const CriVerbs& verbs, const char* name, const char* help, const char* what,
               Result<> (*work)(CriClient&, const std::string&)) {
  auto ids = std::make_shared<std::vector<std::string>>();
  CLI::App* verb = verbs.Add(name, help, [ids, work](CriClient& client) {
    return ForEachId(*ids, [&](const std::string& id) { return work(client, id); });
  });
  verb->add_option(what, *ids, "Ids, or beginnings of ids")->required();
}

}  // namespace

void AddCriStop(const CriVerbs& verbs) {
  AddSimple(verbs, "start", "Start created containers", "CONTAINER-ID", StartContainer);
  AddSimple(verbs, "stopp", "Stop running pods", "POD-ID", StopPod);
  auto options = std::make_shared<StopOptions>();
  CLI::App* verb = verbs.Add("stop", "Stop running containers",
                             [options](CriClient& client) { return StopContainers(client, *options); });
  AddIds(*verb, options->ids, "CONTAINER-ID");
  verb->add_option("-t,--timeout", options->grace_seconds, "Seconds from the request to stop until the kill")
      ->check(CLI::NonNegativeNumber);
  verb->add_flag("-a,--all", options->all, "All running containers");
}

}  // namespace keelson::ctl

// nodectl logs
#include <iostream>

#include "ctl/cri/containers.h"
#include "ctl/cri/log_file.h"
#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/verb.h"

namespace keelson::ctl {
namespace {

struct LogsOptions {
  std::string id, since;
  LogChoice choice;
  bool follow = false, previous = false;
};

// The instance of the container before this one, in the same pod of the API.
Result<cri::ContainerStatus> PreviousInstance(CriClient& client, const cri::ContainerStatus& current) {
  CriFilter filter;
  filter.all = true;
  for (const char* label : {"io.kubernetes.pod.uid", "io.kubernetes.container.name"}) {
    const auto found = current.labels().find(label);
    if (found == current.labels().end()) {
      return Error(Code::kNotFound,
                   "container " + current.id() + " is not of Kubernetes: it has no label " + label);
    }
    filter.labels.push_back(std::string(label) + "=" + found->second);
  }
  const auto all = ListContainers(client, filter);
  if (!all) return all.error();
  for (const cri::Container& one : *all) {
    if (one.metadata().attempt() + 1 != current.metadata().attempt()) continue;
    KEELSON_ASSIGN_OR_RETURN(const cri::ContainerStatusResponse reply,
                             GetContainerStatus(client, one.id(), false));
    return reply.status();
  }
  return Error(Code::kNotFound, "container " + current.id() + " has no previous instance");
}

Result<int> ShowLogs(CriClient& client, const LogsOptions& options) {
  LogChoice choice = options.choice;
  if (!options.since.empty()) {
    KEELSON_ASSIGN_OR_RETURN(choice.since, ParseSince(options.since, Clock::Real().Now()));
  }
  const auto reply = GetContainerStatus(client, options.id, false);
  if (!reply) return reply.error();
  cri::ContainerStatus status = reply->status();
  if (options.previous) {
    KEELSON_ASSIGN_OR_RETURN(status, PreviousInstance(client, status));
  }
  if (status.log_path().empty()) return Error(Code::kNotFound, "the container has not set log path");
  auto print = [](const LogPrinter::Output& output) {
    std::ostream& stream = output.is_stderr ? std::cerr : std::cout;
    stream.write(output.text.data(), static_cast<std::streamsize>(output.text.size()));
  };
  auto alive = [&] {
    std::cout.flush();
    if (!options.follow) return false;
    const auto now = GetContainerStatus(client, status.id(), false);
    // A runtime that does not answer may be restarting: the container goes on.
    return now ? now->status().state() == cri::CONTAINER_RUNNING : !now.error().Is(Code::kNotFound);
  };
  KEELSON_RETURN_IF_ERROR(PrintLog(status.log_path(), choice, print, alive));
  std::cout.flush();
  return 0;
}

}  // namespace

void AddCriLogs(const CriVerbs& verbs) {
  auto options = std::make_shared<LogsOptions>();
  CLI::App* verb = verbs.Add("logs", "Show the log of a container",
                             [options](CriClient& client) { return ShowLogs(client, *options); });
  verb->add_option("CONTAINER-ID", options->id, "The container")->required();
  verb->add_flag("-f,--follow", options->follow, "Wait for more, until the container ends");
  verb->add_option("--tail", options->choice.tail, "So many lines of the end; below 0: all")
      ->capture_default_str();
  verb->add_option("--limit-bytes", options->choice.limit_bytes, "At most so many bytes; below 0: all")
      ->capture_default_str();
  verb->add_option("--since", options->since, "Since a time (2013-01-02T13:23:37) or a duration ago (42m)");
  verb->add_flag("-t,--timestamps", options->choice.timestamps, "The time of each line");
  verb->add_flag("-p,--previous", options->previous, "The log of the instance before this one");
}

}  // namespace keelson::ctl

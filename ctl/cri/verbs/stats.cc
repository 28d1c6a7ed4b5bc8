// nodectl stats, statsp
#include <poll.h>
#include <unistd.h>

#include <iostream>

#include <boost/json.hpp>

#include "ctl/cri/stats.h"
#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/verb.h"

namespace keelson::ctl {
namespace {

struct StatsOptions {
  std::string id;
  CriFilter filter;
  CriOutput output;
  int seconds = 1;
  bool watch = false;
};

// Asks twice, `seconds` apart, for the table of what was used in between; once for programs. With --watch again and
// again, until a signal ends nodectl.
template <typename Sample, typename Table>
Result<int> Show(const StatsOptions& options, const Sample& sample, const Table& table) {
  KEELSON_ASSIGN_OR_RETURN(const CriFormat format, options.output.Format());
  for (;;) {
    KEELSON_ASSIGN_OR_RETURN(auto before, sample());
    std::string text;
    if (format != CriFormat::kTable) {
      KEELSON_ASSIGN_OR_RETURN(const boost::json::value document, MessageDocument(before));
      KEELSON_ASSIGN_OR_RETURN(text, CriText(document, format));
    }
    if (format == CriFormat::kTable || options.watch) ::poll(nullptr, 0, options.seconds * 1000);
    if (format == CriFormat::kTable) {
      KEELSON_ASSIGN_OR_RETURN(const auto now, sample());
      KEELSON_ASSIGN_OR_RETURN(text, table(before, now));
    }
    if (options.watch && ::isatty(STDOUT_FILENO)) std::cout << "\033[2J\033[H";
    std::cout << text << std::flush;
    if (!options.watch) return 0;
  }
}

Result<int> ShowContainerStats(CriClient& client, const StatsOptions& options) {
  cri::ListContainerStatsRequest request;
  request.mutable_filter()->set_id(options.id);
  request.mutable_filter()->set_pod_sandbox_id(options.filter.pod);
  KEELSON_ASSIGN_OR_RETURN(const auto labels, ParseLabels(options.filter.labels));
  request.mutable_filter()->mutable_label_selector()->insert(labels.begin(), labels.end());
  auto sample = [&]() -> Result<cri::ListContainerStatsResponse> {
    auto reply = client.Ask(&RuntimeStub::ListContainerStats, request);
    if (!reply) return reply.error().Wrap("get container stats");
    SortStats(*reply);
    return reply;
  };
  return Show(options, sample, [&](const auto& before, const auto& now) {
    return ContainerStatsTable(before, now, options.filter.all);
  });
}

Result<int> ShowPodStats(CriClient& client, const StatsOptions& options) {
  cri::ListPodSandboxStatsRequest request;
  request.mutable_filter()->set_id(options.id);
  KEELSON_ASSIGN_OR_RETURN(const auto labels, ParseLabels(options.filter.labels));
  request.mutable_filter()->mutable_label_selector()->insert(labels.begin(), labels.end());
  auto sample = [&]() -> Result<cri::ListPodSandboxStatsResponse> {
    auto reply = client.Ask(&RuntimeStub::ListPodSandboxStats, request);
    if (!reply) return reply.error().Wrap("get pod stats");
    SortStats(*reply);
    return reply;
  };
  return Show(options, sample, PodStatsTable);
}

void AddStats(const CriVerbs& verbs, const char* name, const char* help, const char* filter,
              Result<int> (*run)(CriClient&, const StatsOptions&)) {
  auto options = std::make_shared<StatsOptions>();
  CLI::App* verb = verbs.Add(name, help, [options, run](CriClient& client) { return run(client, *options); });
  CLI::Option* positional = verb->add_option("ID", options->id, "The one with this id");
  verb->add_option("--id", options->id, "The one with this id")->excludes(positional);
  AddFilter(*verb, options->filter, filter);
  options->output.AddTo(*verb, verbs, "table", false);
  verb->add_option("-s,--seconds", options->seconds, "Seconds to measure the use of CPUs")
      ->capture_default_str()
      ->check(CLI::Range(1, 3600));
  verb->add_flag("-w,--watch", options->watch, "Go on");
}

}  // namespace

void AddCriStats(const CriVerbs& verbs) {
  AddStats(verbs, "stats", "Show what containers use", "pod label all", ShowContainerStats);
  AddStats(verbs, "statsp", "Show what pods use", "label", ShowPodStats);
}

}  // namespace keelson::ctl

// nodectl pods
#include <iostream>

#include <boost/json.hpp>

#include "ctl/cri/pods.h"
#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/verb.h"

namespace keelson::ctl {
namespace {

struct PodsOptions {
  CriFilter filter;
  CriOutput output;
  bool verbose = false, quiet = false, full_ids = false;
};

Result<int> ShowPods(CriClient& client, const PodsOptions& options) {
  KEELSON_ASSIGN_OR_RETURN(const CriFormat format, options.output.Format());
  const auto pods = ListPods(client, options.filter);
  if (!pods) return pods.error().Wrap("listing pod sandboxes");
  if (format != CriFormat::kTable) {
    cri::ListPodSandboxResponse reply;
    for (const cri::PodSandbox& pod : *pods) *reply.add_items() = pod;
    KEELSON_ASSIGN_OR_RETURN(const boost::json::value document, MessageDocument(reply));
    KEELSON_ASSIGN_OR_RETURN(const std::string text, CriText(document, format));
    std::cout << text;
  } else if (options.quiet) {
    for (const cri::PodSandbox& pod : *pods) std::cout << pod.id() << "\n";
  } else if (options.verbose) {
    std::cout << PodParagraphs(*pods);
  } else {
    std::cout << PodTable(*pods, options.full_ids, Clock::Real().Now());
  }
  return 0;
}

}  // namespace

void AddCriPods(const CriVerbs& verbs) {
  auto options = std::make_shared<PodsOptions>();
  CLI::App* verb = verbs.Add("pods", "List pods of the container runtime",
                             [options](CriClient& client) { return ShowPods(client, *options); });
  AddFilter(*verb, options->filter, "id name namespace state label latest last");
  options->output.AddTo(*verb, verbs, "table", false);
  verb->add_flag("-v,--verbose", options->verbose, "Everything of each pod");
  verb->add_flag("-q,--quiet", options->quiet, "Ids alone");
  verb->add_flag("--no-trunc", options->full_ids, "Ids in full");
}

}  // namespace keelson::ctl

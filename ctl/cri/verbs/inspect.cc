// nodectl inspect, inspectp, inspecti
#include <iostream>

#include <boost/json.hpp>

#include "ctl/cri/containers.h"
#include "ctl/cri/images.h"
#include "ctl/cri/pods.h"
#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/verb.h"

namespace keelson::ctl {
namespace {

struct InspectOptions {
  std::vector<std::string> ids;
  CriFilter filter;
  CriOutput output;
  bool quiet = false;
};
// One object: as text, or as a document.
struct Inspected {
  std::string text;
  boost::json::value document;
};
using Look = std::function<Result<Inspected>(const std::string& id, bool verbose)>;

Result<int> ShowAll(const InspectOptions& options, const std::vector<std::string>& ids, const Look& look) {
  KEELSON_ASSIGN_OR_RETURN(const CriFormat format, options.output.Format());
  if (ids.empty()) return Error(Code::kInvalid, "No IDs provided or nothing found per filter");
  std::vector<boost::json::value> documents;
  for (const std::string& id : ids) {
    KEELSON_ASSIGN_OR_RETURN(Inspected one, look(id, !options.quiet));
    if (format == CriFormat::kTable) {
      std::cout << one.text;
    } else {
      documents.push_back(std::move(one.document));
    }
  }
  if (format == CriFormat::kTable) return 0;
  KEELSON_ASSIGN_OR_RETURN(const std::string text, StatusText(documents, format, options.output.go_template));
  std::cout << text;
  return 0;
}

template <typename Object>
std::vector<std::string> IdsOf(const std::vector<Object>& objects) {
  std::vector<std::string> out;
  for (const Object& object : objects) out.push_back(object.id());
  return out;
}

Result<int> InspectContainers(CriClient& client, const InspectOptions& options) {
  std::vector<std::string> ids = options.ids;
  if (ids.empty()) {
    const auto found = ListContainers(client, options.filter);
    if (!found) return found.error().Wrap("listing containers");
    ids = IdsOf(*found);
  }
  return ShowAll(options, ids, [&client](const std::string& id, bool verbose) -> Result<Inspected> {
    const auto reply = GetContainerStatus(client, id, verbose);
    if (!reply) return reply.error().Wrap("get the status of containers");
    KEELSON_ASSIGN_OR_RETURN(boost::json::value document, ContainerStatusDocument(*reply));
    return Inspected{ContainerStatusText(*reply, verbose, Clock::Real().Now()), std::move(document)};
  });
}

Result<int> InspectPods(CriClient& client, const InspectOptions& options) {
  std::vector<std::string> ids = options.ids;
  if (ids.empty()) {
    const auto found = ListPods(client, options.filter);
    if (!found) return found.error().Wrap("listing pod sandboxes");
    ids = IdsOf(*found);
  }
  return ShowAll(options, ids, [&client](const std::string& id, bool verbose) -> Result<Inspected> {
    cri::PodSandboxStatusRequest request;
    request.set_pod_sandbox_id(id);
    request.set_verbose(verbose);
    const auto reply = client.Ask(&RuntimeStub::PodSandboxStatus, request);
    if (!reply) return reply.error().Wrap("get the status of pod sandboxes");
    KEELSON_ASSIGN_OR_RETURN(boost::json::value document, PodStatusDocument(*reply));
    return Inspected{PodStatusText(*reply, verbose), std::move(document)};
  });
}

Result<int> InspectImages(CriClient& client, const InspectOptions& options) {
  return ShowAll(options, options.ids, [&client](const std::string& id, bool verbose) -> Result<Inspected> {
    KEELSON_ASSIGN_OR_RETURN(const cri::ImageStatusResponse reply, GetImageStatus(client, id, verbose));
    KEELSON_ASSIGN_OR_RETURN(boost::json::value document, ImageStatusDocument(reply));
    return Inspected{ImageStatusText(reply, verbose), std::move(document)};
  });
}

void AddInspect(const CriVerbs& verbs, const char* name, const char* help, const char* ids,
                const char* filter, Result<int> (*run)(CriClient&, const InspectOptions&)) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* verb = verbs.Add(name, help, [options, run](CriClient& client) { return run(client, *options); });
  AddIds(*verb, options->ids, ids);
  AddFilter(*verb, options->filter, filter);
  options->output.AddTo(*verb, verbs, "json", true);
  verb->add_flag("-q,--quiet", options->quiet, "Without what only this runtime tells");
}

}  // namespace

void AddCriInspect(const CriVerbs& verbs) {
  AddInspect(verbs, "inspect", "Show the status of containers", "CONTAINER-ID",
             "name pod namespace image state label latest last all", InspectContainers);
  AddInspect(verbs, "inspectp", "Show the status of pods", "POD-ID", "name namespace state label latest last",
             InspectPods);
  AddInspect(verbs, "inspecti", "Show the status of images", "IMAGE-ID", "", InspectImages);
}

}  // namespace keelson::ctl

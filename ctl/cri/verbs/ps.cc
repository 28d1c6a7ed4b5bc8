// nodectl ps
#include <iostream>

#include <boost/json.hpp>

#include "ctl/cri/containers.h"
#include "ctl/cri/images.h"
#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/verb.h"

namespace keelson::ctl {
namespace {

struct PsOptions {
  CriFilter filter;
  CriOutput output;
  bool verbose = false, quiet = false, full_ids = false, image_names = false;
};

// The first tag of each container's image in place of its id.
Result<> NameImages(CriClient& client, std::vector<cri::Container>& containers) {
  for (cri::Container& container : containers) {
    KEELSON_ASSIGN_OR_RETURN(const cri::ImageStatusResponse image,
                             GetImageStatus(client, container.image().image(), false));
    if (!image.image().repo_tags().empty()) container.mutable_image()->set_image(image.image().repo_tags(0));
  }
  return {};
}

Result<int> ShowContainers(CriClient& client, const PsOptions& options) {
  KEELSON_ASSIGN_OR_RETURN(const CriFormat format, options.output.Format());
  auto containers = ListContainers(client, options.filter);
  if (!containers) return containers.error().Wrap("listing containers");
  if (format != CriFormat::kTable) {
    cri::ListContainersResponse reply;
    for (const cri::Container& one : *containers) *reply.add_containers() = one;
    KEELSON_ASSIGN_OR_RETURN(const boost::json::value document, MessageDocument(reply));
    KEELSON_ASSIGN_OR_RETURN(const std::string text, CriText(document, format));
    std::cout << text;
  } else if (options.quiet) {
    for (const cri::Container& one : *containers) std::cout << one.id() << "\n";
  } else if (options.verbose) {
    std::cout << ContainerParagraphs(*containers, Clock::Real().Now());
  } else {
    if (options.image_names) KEELSON_RETURN_IF_ERROR(NameImages(client, *containers));
    std::cout << ContainerTable(*containers, options.full_ids, Clock::Real().Now());
  }
  return 0;
}

}  // namespace

void AddCriPs(const CriVerbs& verbs) {
  auto options = std::make_shared<PsOptions>();
  CLI::App* verb = verbs.Add("ps", "List containers",
                             [options](CriClient& client) { return ShowContainers(client, *options); });
  AddFilter(*verb, options->filter, "id name pod namespace image state label latest last all");
  options->output.AddTo(*verb, verbs, "table", false);
  verb->add_flag("-v,--verbose", options->verbose, "Everything of each container");
  verb->add_flag("-q,--quiet", options->quiet, "Ids alone");
  verb->add_flag("--no-trunc", options->full_ids, "Ids in full");
  verb->add_flag("-r,--resolve-image-path", options->image_names, "Names of images instead of ids");
}

}  // namespace keelson::ctl

// nodectl images
#include <iostream>

#include <boost/json.hpp>

#include "ctl/cri/images.h"
#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/verb.h"

namespace keelson::ctl {
namespace {

struct ImagesOptions {
  std::string repository;
  std::vector<std::string> filters;
  CriOutput output;
  ImageColumns columns;
  bool verbose = false, quiet = false;
};

Result<int> ShowImages(CriClient& client, const ImagesOptions& options) {
  KEELSON_ASSIGN_OR_RETURN(const CriFormat format, options.output.Format());
  cri::ListImagesRequest request;
  request.mutable_filter()->mutable_image()->set_image(options.repository);
  const auto reply = client.Ask(&ImageStub::ListImages, request);
  if (!reply) return reply.error().Wrap("listing images");
  const auto images = FilterImages(SortedImages(*reply), options.filters);
  if (!images) return images.error().Wrap("listing images");
  if (format != CriFormat::kTable) {
    cri::ListImagesResponse shown;
    for (const cri::Image& image : *images) *shown.add_images() = image;
    KEELSON_ASSIGN_OR_RETURN(const boost::json::value document, MessageDocument(shown));
    KEELSON_ASSIGN_OR_RETURN(const std::string text, CriText(document, format));
    std::cout << text;
  } else if (options.quiet) {
    for (const cri::Image& image : *images) std::cout << image.id() << "\n";
  } else if (options.verbose) {
    std::cout << ImageParagraphs(*images);
  } else {
    std::cout << ImageTable(*images, options.columns);
  }
  return 0;
}

}  // namespace

void AddCriImages(const CriVerbs& verbs) {
  auto options = std::make_shared<ImagesOptions>();
  CLI::App* verb = verbs.Add("images", "List images",
                             [options](CriClient& client) { return ShowImages(client, *options); });
  verb->alias("image")->alias("img");
  verb->add_option("REPOSITORY", options->repository, "Images of this name, or NAME:TAG");
  verb->add_option(
      "-f,--filter", options->filters,
      "dangling=BOOL, reference=REGEXP, before=IMAGE or since=IMAGE; may be repeated, all must hold");
  options->output.AddTo(*verb, verbs, "table", false);
  verb->add_flag("-v,--verbose", options->verbose, "Everything of each image");
  verb->add_flag("-q,--quiet", options->quiet, "Ids alone");
  verb->add_flag("--digests", options->columns.digests, "Digests too");
  verb->add_flag("--pinned", options->columns.pinned, "Whether an image is pinned");
  verb->add_flag("--no-trunc", options->columns.full_ids, "Ids in full");
}

}  // namespace keelson::ctl

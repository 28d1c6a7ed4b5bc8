// nodectl rmi
#include <iostream>
#include <set>

#include "ctl/cri/images.h"
#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/verb.h"

namespace keelson::ctl {
namespace {

struct RemoveImagesOptions {
  std::vector<std::string> ids;
  bool all = false, prune = false;
};

// --all: every image; --prune: those that are neither pinned nor of a container.
Result<std::vector<std::string>> ImagesToRemove(CriClient& client, const RemoveImagesOptions& options) {
  std::vector<std::string> ids = options.ids;
  if (!options.all && !options.prune) return ids;
  const auto images = client.Ask(&ImageStub::ListImages, cri::ListImagesRequest());
  if (!images) return images.error().Wrap("listing images");
  std::set<std::string> used;
  if (options.prune) {
    const auto containers = client.Ask(&RuntimeStub::ListContainers, cri::ListContainersRequest());
    if (!containers) return containers.error().Wrap("listing containers");
    for (const cri::Container& container : containers->containers()) {
      const auto image = GetImageStatus(client, container.image().image(), false);
      if (image) {
        used.insert(image->image().id());
      } else if (!image.error().Is(Code::kNotFound)) {
        return image.error();  // it may be in use
      }
    }
  }
  for (const cri::Image& image : images->images()) {
    if (options.prune && (image.pinned() || used.contains(image.id()))) continue;
    ids.push_back(image.id());
  }
  return ids;
}

Result<> RemoveImage(CriClient& client, const std::string& id) {
  KEELSON_ASSIGN_OR_RETURN(const cri::ImageStatusResponse image, GetImageStatus(client, id, false));
  cri::RemoveImageRequest request;
  request.mutable_image()->set_image(id);
  const auto reply = client.Call(&ImageStub::RemoveImage, request);
  if (!reply) return reply.error().Wrap("error of removing image \"" + id + "\"");
  const auto& tags = image.image().repo_tags();
  for (const std::string& name : tags.empty() ? image.image().repo_digests() : tags) {
    std::cout << "Deleted: " << name << "\n";
  }
  return {};
}

Result<int> RemoveImages(CriClient& client, const RemoveImagesOptions& options) {
  if (!options.all && !options.prune && options.ids.empty()) {
    return Error(Code::kInvalid, "you must specify at least one IMAGE-ID, or use --all or --prune");
  }
  KEELSON_ASSIGN_OR_RETURN(const std::vector<std::string> ids, ImagesToRemove(client, options));
  if (ids.empty()) std::cerr << "No images to remove\n";
  return ForEachId(ids, [&](const std::string& id) { return RemoveImage(client, id); });
}

}  // namespace

void AddCriRemoveImages(const CriVerbs& verbs) {
  auto options = std::make_shared<RemoveImagesOptions>();
  CLI::App* verb = verbs.Add("rmi", "Remove images",
                             [options](CriClient& client) { return RemoveImages(client, *options); });
  AddIds(*verb, options->ids, "IMAGE-ID");
  verb->add_flag("-a,--all", options->all, "All images");
  verb->add_flag("-q,--prune", options->prune, "Images that no container uses, but for pinned ones");
}

}  // namespace keelson::ctl

#include "ctl/cri/images.h"

#include <algorithm>
#include <boost/json.hpp>

#include "ctl/cri/document.h"
#include "ctl/cri/filter.h"
#include "ctl/cri/pods.h"
#include "ctl/cri/text.h"

namespace keelson::ctl {
namespace {

constexpr char kNone[] = "<none>", kSha256[] = "sha256:";

struct NameAndDigest {
  std::string name = kNone, digest = kNone;
};
NameAndDigest DigestOf(const cri::Image& image) {
  if (image.repo_digests().empty()) return {};
  const std::string& text = image.repo_digests(0);
  const size_t at = text.find('@');
  if (at == std::string::npos || text.find('@', at + 1) != std::string::npos) {
    return {"errorName", "errorRepoDigest"};
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

std::vector<std::pair<std::string, std::string>> TagsOf(const cri::Image& image) {
  const std::string name = DigestOf(image).name;
  if (image.repo_tags().empty()) return {{name, kNone}};
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& tag : image.repo_tags()) {
    const size_t colon = tag.rfind(':');
    if (colon == std::string::npos) {
      out.emplace_back("errorRepoTag", "errorRepoTag");
    } else {
      const std::string repository = tag.substr(0, colon);
      out.emplace_back(repository == kNone ? name : repository, tag.substr(colon + 1));
    }
  }
  return out;
}

bool Before(const cri::Image& a, const cri::Image& b) {
  if (!a.repo_tags().empty() && !b.repo_tags().empty()) return a.repo_tags(0) < b.repo_tags(0);
  if (!a.repo_digests().empty() && !b.repo_digests().empty()) return a.repo_digests(0) < b.repo_digests(0);
  return a.id() < b.id();
}

// NAME:TAG, an id, or NAME@DIGEST.
bool IsImage(const cri::Image& image, const std::string& wanted) {
  if (wanted.find('@') != std::string::npos) {
    return !image.repo_digests().empty() && image.repo_digests(0).starts_with(wanted);
  }
  if (wanted.find(':') == std::string::npos) return image.id().starts_with(wanted);
  const auto [name, tag] = TagsOf(image)[0];
  return name + ":" + tag == wanted;
}

// Those before the first image that `wanted` names; all when it names none.
std::vector<cri::Image> UpTo(const std::vector<cri::Image>& images, const std::string& wanted) {
  const auto end =
      std::find_if(images.begin(), images.end(), [&](const auto& one) { return IsImage(one, wanted); });
  return {images.begin(), end};
}

std::string FsLines(const char* label, const google::protobuf::RepeatedPtrField<cri::FilesystemUsage>& all) {
  std::string out = std::string(label) + " Filesystem \n";
  for (int i = 0; i < all.size(); ++i) {
    const std::string index = "[" + std::to_string(i) + "]: ";
    out += "TimeStamp" + index + std::to_string(all[i].timestamp()) + "\nDisk" + index +
           HumanSize(static_cast<double>(all[i].used_bytes().value())) + "\nInodes" + index +
           std::to_string(all[i].inodes_used().value()) + "\nMountpoint" + index +
           all[i].fs_id().mountpoint() + "\n";
  }
  return out;
}

}  // namespace

std::vector<cri::Image> SortedImages(const cri::ListImagesResponse& reply) {
  std::vector<cri::Image> out(reply.images().begin(), reply.images().end());
  std::stable_sort(out.begin(), out.end(), Before);
  return out;
}

Result<std::vector<cri::Image>> FilterImages(std::vector<cri::Image> images,
                                             const std::vector<std::string>& filters) {
  for (const std::string& filter : filters) {
    const std::string value = filter.substr(std::min(filter.size(), filter.find('=') + 1));
    if (filter.starts_with("dangling=")) {
      if (value != "true" && value != "false") {
        return Error(Code::kInvalid, "filter dangling wants true or false, not \"" + value + "\"");
      }
      std::erase_if(images, [&](const auto& one) { return one.repo_tags().empty() != (value == "true"); });
    } else if (filter.starts_with("reference=")) {
      KEELSON_ASSIGN_OR_RETURN(const NamePattern pattern, NamePattern::Parse(value));
      std::erase_if(images, [&](const auto& one) { return !pattern.Matches(DigestOf(one).name); });
    } else if (filter.starts_with("since=")) {
      images = UpTo(images, value);
    } else if (filter.starts_with("before=")) {
      std::reverse(images.begin(), images.end());
      images = UpTo(images, value);
      std::reverse(images.begin(), images.end());
    } else {
      return Error(Code::kInvalid, "unknown filter flag: " + filter);
    }
  }
  return images;
}

std::string ImageTable(const std::vector<cri::Image>& images, const ImageColumns& columns) {
  auto row = [&](const std::string& name, const std::string& tag, const std::string& digest,
                 const std::string& id, const std::string& size, const std::string& pinned) {
    std::vector<std::string> out = {name, tag};
    if (columns.digests) out.push_back(digest);
    out.push_back(id);
    out.push_back(size);
    if (columns.pinned) out.push_back(pinned);
    return out;
  };
  std::vector<std::vector<std::string>> rows = {row("IMAGE", "TAG", "DIGEST", "IMAGE ID", "SIZE", "PINNED")};
  for (const cri::Image& image : images) {
    const std::string digest = DigestOf(image).digest;
    for (const auto& [name, tag] : TagsOf(image)) {
      rows.push_back(row(name, tag, columns.full_ids ? digest : TruncatedId(digest, kSha256),
                         columns.full_ids ? image.id() : TruncatedId(image.id(), kSha256),
                         HumanSize(static_cast<double>(image.size()), 3), image.pinned() ? "true" : "false"));
    }
  }
  return CriTable(rows);
}

std::string ImageParagraphs(const std::vector<cri::Image>& images) {
  std::string out;
  for (const cri::Image& image : images) {
    out += "ID: " + image.id() + "\n";
    for (const std::string& tag : image.repo_tags()) out += "RepoTags: " + tag + "\n";
    for (const std::string& digest : image.repo_digests()) out += "RepoDigests: " + digest + "\n";
    if (image.size() != 0) out += "Size: " + std::to_string(image.size()) + "\n";
    if (image.has_uid()) out += "Uid: value:" + std::to_string(image.uid().value()) + "\n";
    if (!image.username().empty()) out += "Username: " + image.username() + "\n";
    if (image.pinned()) out += "Pinned: true\n";
    out += "\n";
  }
  return out;
}

std::string ImageStatusText(const cri::ImageStatusResponse& reply, bool verbose) {
  std::string out = "ID: " + reply.image().id() + "\n";
  for (const std::string& tag : reply.image().repo_tags()) out += "Tag: " + tag + "\n";
  for (const std::string& digest : reply.image().repo_digests()) out += "Digest: " + digest + "\n";
  out += "Size: " + HumanSize(static_cast<double>(reply.image().size()), 3) + "\n";
  if (verbose) out += "Info: " + InfoText(reply.info()) + "\n";
  return out;
}

Result<boost::json::value> ImageStatusDocument(const cri::ImageStatusResponse& reply) {
  KEELSON_ASSIGN_OR_RETURN(boost::json::value image, MessageDocument(reply.image()));
  return StatusDocument(std::move(image), Items(reply.info()));
}

std::string ImageFsText(const cri::ImageFsInfoResponse& reply) {
  return FsLines("Container", reply.container_filesystems()) + FsLines("Image", reply.image_filesystems());
}

Result<cri::ImageStatusResponse> GetImageStatus(CriClient& client, const std::string& image, bool verbose) {
  cri::ImageStatusRequest request;
  request.mutable_image()->set_image(image);
  request.set_verbose(verbose);
  auto reply = client.Ask(&ImageStub::ImageStatus, request);
  if (!reply) return reply.error().Wrap("image status for \"" + image + "\" request");
  if (!reply->has_image()) return Error(Code::kNotFound, "no such image \"" + image + "\" present");
  return reply;
}

Result<cri::AuthConfig> PullAuth(const std::string& creds, const std::string& auth) {
  cri::AuthConfig out;
  if (!creds.empty() && !auth.empty()) {
    return Error(Code::kInvalid, "both `--creds` and `--auth` are specified");
  }
  out.set_auth(auth);
  if (creds.empty()) return out;
  const size_t colon = creds.find(':');
  if (colon == 0) return Error(Code::kInvalid, "username can't be empty");
  out.set_username(creds.substr(0, colon));
  if (colon != std::string::npos) out.set_password(creds.substr(colon + 1));
  return out;
}

}  // namespace keelson::ctl

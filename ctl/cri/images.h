// Images: which ones, and how they look.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "ctl/cri/client.h"

namespace keelson::ctl {

// In the order of `images`: by tag, by digest, by id.
std::vector<cri::Image> SortedImages(const cri::ListImagesResponse& reply);
// `filters`: dangling=BOOL, reference=REGEXP, before=IMAGE, since=IMAGE; all must hold. kInvalid: another one.
Result<std::vector<cri::Image>> FilterImages(std::vector<cri::Image> images,
                                             const std::vector<std::string>& filters);

struct ImageColumns {
  bool digests = false, pinned = false, full_ids = false;
};
std::string ImageTable(const std::vector<cri::Image>& images, const ImageColumns& columns);
std::string ImageParagraphs(const std::vector<cri::Image>& images);  // --verbose
std::string ImageStatusText(const cri::ImageStatusResponse& reply, bool verbose);
Result<boost::json::value> ImageStatusDocument(const cri::ImageStatusResponse& reply);
std::string ImageFsText(const cri::ImageFsInfoResponse& reply);

// kNotFound: "no such image ... present".
Result<cri::ImageStatusResponse> GetImageStatus(CriClient& client, const std::string& image, bool verbose);

// Credentials of a pull. kInvalid: both, or malformed. `creds`: USERNAME[:PASSWORD]; `auth`: the same in base64.
Result<cri::AuthConfig> PullAuth(const std::string& creds, const std::string& auth);

}  // namespace keelson::ctl

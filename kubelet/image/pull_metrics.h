// kubelet_image_pull_duration_seconds, by how large images are.
#pragma once

#include <cstdint>
#include <string>

namespace keelson::kubelet {

void CountPull(uint64_t image_bytes, double seconds);
std::string ImageSizeLabel(uint64_t bytes);  // "10MB-100MB"; "N/A" for 0

}  // namespace keelson::kubelet

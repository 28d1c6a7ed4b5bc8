// What is counted of images: kubelet_image_pull_*, by how large they are, kubelet_image_manager_*,
// kubelet_imagemanager_* and kubelet_credential_provider_*.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace keelson::kubelet {

void CountPull(uint64_t image_bytes, double seconds);
std::string ImageSizeLabel(uint64_t bytes);  // "10MB-100MB"; "N/A" for 0

// An image was asked for; nullopt: that was not found out.
void CountEnsuredImage(const std::string& pull_policy, std::optional<bool> present,
                       std::optional<bool> pull_required);
// Whether a pod may use an image that is there: credentialPolicyAllowed, credentialRecordFound,
// mustAuthenticate, error.
void CountMustPullCheck(const char* result);
// What is on disk of pulls that were begun, and of those that have ended.
void SetPullRecordCounts(size_t intents, size_t records);

void CountCredentialPlugin(const std::string& name, bool good, double seconds);
void SetCredentialConfigHash(const std::string& sha256);

}  // namespace keelson::kubelet

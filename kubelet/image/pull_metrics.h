// Metrics of images: kubelet_image_pull_* by size, kubelet_image_manager_*, kubelet_imagemanager_* and
// kubelet_credential_provider_*.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace keelson::kubelet {

void CountPull(uint64_t image_bytes, double seconds);
std::string ImageSizeLabel(uint64_t bytes);  // "10MB-100MB"; "N/A" for 0

// An image was requested; nullopt: not found out.
void CountEnsuredImage(const std::string& pull_policy, std::optional<bool> present,
                       std::optional<bool> pull_required);
// The result of checking whether a pod may use a present image: credentialPolicyAllowed, credentialRecordFound,
// mustAuthenticate, error.
void CountMustPullCheck(const char* result);
// The numbers of ImagePullIntents and ImagePulledRecords on disk.
void SetPullRecordCounts(size_t intents, size_t records);

void CountCredentialPlugin(const std::string& name, bool good, double seconds);
void SetCredentialConfigHash(const std::string& sha256);

}  // namespace keelson::kubelet

#include "kubelet/volume/csi/version.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace keelson::kubelet::csi {

namespace {

// As Go prints a slice: "[1.0.0 2.0.0]".
std::string Listed(const std::vector<std::string>& versions) {
  std::string out = "[";
  for (const std::string& version : versions) out += (out.size() > 1 ? " " : "") + version;
  return out + "]";
}

}  // namespace

bool Version::operator<(const Version& other) const {
  const size_t count = std::max(parts.size(), other.parts.size());
  for (size_t i = 0; i < count; ++i) {
    const uint64_t mine = i < parts.size() ? parts[i] : 0;
    const uint64_t theirs = i < other.parts.size() ? other.parts[i] : 0;
    if (mine != theirs) return mine < theirs;
  }
  return false;
}

Result<Version> ParseVersion(std::string_view text) {
  Version out;
  std::string_view rest = text;
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  if (!rest.empty() && rest.front() == 'v') rest.remove_prefix(1);
  while (true) {
    uint64_t part = 0;
    const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), part);
    if (problem != std::errc()) break;
    const auto length = static_cast<size_t>(end - rest.data());
    if (length > 1 && rest.front() == '0') {
      return Error(Code::kInvalid, "illegal zero-prefixed version component \"" +
                                       std::string(rest.substr(0, length)) + "\" in \"" + std::string(text) +
                                       "\"");
    }
    out.parts.push_back(part);
    out.text += (out.text.empty() ? "" : ".") + std::to_string(part);
    rest.remove_prefix(length);
    if (rest.empty() || rest.front() != '.') break;
    rest.remove_prefix(1);
  }
  if (out.parts.empty()) {
    return Error(Code::kInvalid, "could not parse \"" + std::string(text) + "\" as version");
  }
  if (out.parts.size() < 2) {
    return Error(Code::kInvalid, "illegal version string \"" + std::string(text) + "\"");
  }
  return out;
}

Result<Version> HighestSupportedVersion(const std::vector<std::string>& versions) {
  if (versions.empty()) return Error(Code::kInvalid, "empty array for supported versions");
  std::optional<Version> highest;
  std::string problem = "<nil>";
  for (const std::string& text : versions) {
    auto version = ParseVersion(text);
    if (!version) {
      problem = version.error().message();
    } else if (version->parts[0] <= 1 && (!highest || *highest < *version)) {
      highest = std::move(*version);
    }
  }
  if (!highest) {
    return Error(Code::kInvalid, "could not find a highest supported version from versions (" +
                                     Listed(versions) + ") reported by this plugin: " + problem);
  }
  if (highest->parts[0] != 1) {
    return Error(Code::kInvalid,
                 "highest supported version reported by plugin is " + highest->text + ", must be v1.x");
  }
  return *highest;
}

}  // namespace keelson::kubelet::csi

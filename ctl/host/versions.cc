#include "ctl/host/versions.h"

#include <charconv>

#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

bool ReadNumber(std::string_view text, int& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return !text.empty() && text[0] != '-' && error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::strong_ordering operator<=>(const Version& a, const Version& b) {
  if (auto order = a.major <=> b.major; order != 0) return order;
  if (auto order = a.minor <=> b.minor; order != 0) return order;
  if (auto order = a.patch <=> b.patch; order != 0) return order;
  if (a.pre_release.empty() != b.pre_release.empty()) return a.pre_release.empty() <=> b.pre_release.empty();
  return a.pre_release <=> b.pre_release;
}

bool operator==(const Version& a, const Version& b) { return (a <=> b) == 0; }

Result<Version> ParseVersion(std::string_view text) {
  const Error wrong(Code::kInvalid, "could not parse \"" + std::string(text) + "\" as version");
  std::string_view rest = Trim(text);
  if (rest.starts_with('v')) rest.remove_prefix(1);
  rest = rest.substr(0, rest.find('+'));
  Version out;
  if (const size_t dash = rest.find('-'); dash != rest.npos) {
    out.pre_release = rest.substr(dash + 1);
    rest = rest.substr(0, dash);
    if (out.pre_release.empty()) return wrong;
  }
  const auto parts = Split(rest, '.');
  if (parts.size() != 3 || !ReadNumber(parts[0], out.major) || !ReadNumber(parts[1], out.minor) ||
      !ReadNumber(parts[2], out.patch)) {
    return wrong;
  }
  return out;
}

Result<std::string> InstalledVersion(const Host& host, const std::string& program) {
  KEELSON_ASSIGN_OR_RETURN(const std::string said, host.Ask({program, "--version"}));
  const auto words = SplitWords(said);
  const std::string version(words.empty() ? "" : words.back());
  if (!ParseVersion(version)) {
    return Error(Code::kInvalid, program + " does not tell its version: \"" + version + "\"");
  }
  return version;
}

Result<std::string> InstalledEtcdVersion(const Host& host) {
  constexpr std::string_view kLabel = "etcd Version: ";
  KEELSON_ASSIGN_OR_RETURN(const std::string said, host.Ask({"etcd", "--version"}));
  for (std::string_view line : Split(said, '\n')) {
    if (!line.starts_with(kLabel)) continue;
    const std::string_view version = Trim(line.substr(kLabel.size()));
    if (ParseVersion(version)) return std::string(version);
  }
  return Error(Code::kInvalid, "etcd does not tell its version: \"" + said + "\"");
}

}  // namespace keelson::ctl

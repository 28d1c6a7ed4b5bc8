#include "kubelet/volume/selinux/labels.h"

#include <algorithm>
#include <array>

#include "lib/base/file.h"
#include "lib/base/text.h"

namespace keelson::kubelet {

namespace {

// `key = "value"` in a file of lines; empty: it has none.
std::string Setting(const std::string& text, const std::string& key) {
  for (const std::string_view line : Split(text, '\n')) {
    const std::string_view trimmed = Trim(line);
    const size_t equals = trimmed.find('=');
    if (trimmed.empty() || trimmed.front() == '#' || trimmed.front() == ';' || equals == std::string::npos) {
      continue;
    }
    if (Trim(trimmed.substr(0, equals)) != key) continue;
    std::string_view value = Trim(trimmed.substr(equals + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    return std::string(value);
  }
  return "";
}

bool IsEnabled(const std::string& root) {
  if (!PathExists(root + "/sys/fs/selinux/enforce")) return false;
  // Before a policy is loaded, everything has this label.
  const std::string own = ReadFile(root + "/proc/self/attr/current").value_or("");
  return std::string_view(own.c_str()) != "kernel";
}

std::string LabelOfFiles(const std::string& root) {
  const std::string type = Setting(ReadFile(root + "/etc/selinux/config").value_or(""), "SELINUXTYPE");
  for (const std::string& file :
       {root + "/usr/share/containers/selinux/contexts",
        root + "/etc/selinux/" + (type.empty() ? "targeted" : type) + "/contexts/lxc_contexts"}) {
    if (const auto text = ReadFile(file)) return Setting(*text, "file");
  }
  return "";
}

bool IsOfLabels(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_.-:,").find(c) != std::string_view::npos;
}

}  // namespace

SeLinuxLabels SeLinuxLabels::OfHost(const std::string& root) {
  return IsEnabled(root) ? SeLinuxLabels(LabelOfFiles(root)) : SeLinuxLabels();
}

Result<std::string> SeLinuxLabels::FileLabel(const corev1::SELinuxOptions& options) const {
  for (const std::string& value : {options.user(), options.role(), options.type(), options.level()}) {
    if (!std::all_of(value.begin(), value.end(), IsOfLabels)) {
      return Error(Code::kInvalid, "failed to construct SELinux label: \"" + value + "\" is not part of one");
    }
  }
  if (files_.empty() || options.level().empty()) return std::string();
  // A level has colons of its own.
  constexpr size_t kParts = 3;  // user, role, type
  std::array<std::string, kParts> parts;
  size_t begin = 0;
  for (std::string& part : parts) {
    const size_t end = std::min(files_.find(':', begin), files_.size());
    part = files_.substr(std::min(begin, files_.size()), end - std::min(begin, end));
    begin = end + 1;
  }
  // A process's role and type are not those of its files.
  if (!options.user().empty()) parts[0] = options.user();
  return parts[0] + ":" + parts[1] + ":" + parts[2] + ":" + options.level();
}

}  // namespace keelson::kubelet

#include "kubelet/container/env_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/linux/beneath.h"

namespace keelson::kubelet {

namespace {

constexpr off_t kMaxFile = 64 << 10;

constexpr std::string_view kBlank = " \t\r";

Error Malformed(std::string_view text, size_t at) {
  auto line =
      std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(std::min(at, text.size())), '\n');
  return Error(Code::kInvalid, "line " + std::to_string(line + 1) + ": expected NAME='value'");
}

}  // namespace

Result<std::optional<std::string>> FindInEnvFile(std::string_view text, std::string_view key) {
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = Trim(text.substr(at, end - at), kBlank);
    if (line.empty() || line[0] == '#') {
      at = end + 1;
      continue;
    }
    size_t equals = text.find('=', at);
    if (equals >= end || equals + 1 >= text.size() || text[equals + 1] != '\'') return Malformed(text, at);
    size_t close = text.find('\'', equals + 2);
    if (close == std::string_view::npos) return Malformed(text, at);
    end = std::min(text.find('\n', close), text.size());
    std::string_view rest = Trim(text.substr(close + 1, end - close - 1), kBlank);
    if (!rest.empty() && rest[0] != '#') return Malformed(text, close);
    if (Trim(text.substr(at, equals - at), kBlank) == key) {
      return std::optional<std::string>(text.substr(equals + 2, close - equals - 2));
    }
    at = end + 1;
  }
  return std::optional<std::string>();
}

Result<std::optional<std::string>> ReadEnvFile(const std::string& volume_path, const std::string& path,
                                               std::string_view key) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd root, OpenFile(volume_path, O_PATH | O_DIRECTORY));
  // Not blocked by a pipe that a container has put there.
  KEELSON_ASSIGN_OR_RETURN(UniqueFd file, linux::OpenBeneath(root.get(), path, O_RDONLY | O_NONBLOCK));
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return ErrnoError("stat " + path);
  if (!S_ISREG(info.st_mode)) return Error(Code::kInvalid, path + " is not a file");
  if (info.st_size > kMaxFile) return Error(Code::kTooLarge, path + " is larger than 64 KiB");
  KEELSON_ASSIGN_OR_RETURN(std::string text, ReadAll(file.get(), path));
  return FindInEnvFile(text, key);
}

}  // namespace keelson::kubelet

#include "proxy/dns/resolv_conf.h"

#include <sys/stat.h>

#include <algorithm>

#include "lib/base/file.h"

namespace keelson::proxy::dns {

std::vector<IpAddress> NameServers(std::string_view resolv_conf) {
  static constexpr std::string_view kBlank = " \t\r";
  std::vector<IpAddress> out;
  while (!resolv_conf.empty()) {
    size_t end = std::min(resolv_conf.find('\n'), resolv_conf.size());
    std::string_view line = resolv_conf.substr(0, end);
    resolv_conf.remove_prefix(std::min(end + 1, resolv_conf.size()));
    static constexpr std::string_view kWord = "nameserver";
    if (line.substr(0, kWord.size()) != kWord) continue;
    line.remove_prefix(kWord.size());
    size_t begin = line.find_first_not_of(kBlank);
    if (begin == 0 || begin == std::string_view::npos) continue;
    line.remove_prefix(begin);
    line = line.substr(0, line.find_first_of(" \t\r#;%"));
    Result<IpAddress> ip = IpAddress::Parse(line);
    if (ip && std::find(out.begin(), out.end(), *ip) == out.end()) out.push_back(*ip);
  }
  return out;
}

bool ResolvConf::Changed() {
  struct stat now {};
  std::string seen;
  if (::stat(path_.c_str(), &now) == 0) {
    for (int64_t part : {static_cast<int64_t>(now.st_dev), static_cast<int64_t>(now.st_ino),
                         static_cast<int64_t>(now.st_size), static_cast<int64_t>(now.st_ctim.tv_sec),
                         static_cast<int64_t>(now.st_ctim.tv_nsec)}) {
      seen += std::to_string(part) + " ";
    }
  }
  bool changed = first_ || seen != seen_;
  first_ = false;
  seen_ = std::move(seen);
  return changed;
}

Result<std::vector<IpAddress>> ResolvConf::Read() const {
  KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(path_));
  return NameServers(text);
}

}  // namespace keelson::proxy::dns

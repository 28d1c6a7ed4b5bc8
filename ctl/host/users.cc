#include "ctl/host/users.h"

#include <charconv>
#include <vector>

#include "lib/base/text.h"

namespace keelson::ctl {

Result<UserIds> FindUserIn(const std::string& passwd, std::string_view name) {
  for (std::string_view line : Split(passwd, '\n')) {
    const std::vector<std::string_view> fields = Split(line, ':');
    if (fields.size() < 4 || fields[0] != name) continue;
    UserIds out;
    const auto number = [](std::string_view text, uint32_t& to) {
      return std::from_chars(text.data(), text.data() + text.size(), to).ec == std::errc();
    };
    if (number(fields[2], out.uid) && number(fields[3], out.gid)) return out;
  }
  return Error(Code::kNotFound, "there is no user " + std::string(name) + ": install keelson-controlplane");
}

Result<UserIds> FindUser(const Host& host, std::string_view name) {
  KEELSON_ASSIGN_OR_RETURN(const std::string passwd, host.Read("/etc/passwd"));
  return FindUserIn(passwd, name);
}

}  // namespace keelson::ctl

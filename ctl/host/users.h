// Users of a machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ctl/host/host.h"

namespace keelson::ctl {

struct UserIds {
  uint32_t uid = 0, gid = 0;
};
// Of a text like /etc/passwd (passwd(5)). kNotFound: it has no such user.
Result<UserIds> FindUserIn(const std::string& passwd, std::string_view name);
Result<UserIds> FindUser(const Host& host, std::string_view name);

}  // namespace keelson::ctl

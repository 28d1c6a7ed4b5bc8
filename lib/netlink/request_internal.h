// Internal to lib/netlink: one netlink request, built attribute by attribute.
#pragma once

#include <netlink/attr.h>
#include <netlink/msg.h>

#include <functional>
#include <string>
#include <string_view>

#include "lib/base/ip.h"
#include "lib/netlink/socket.h"

namespace keelson::netlink {

class Request {
 public:
  // `what` names the operation in errors: "create bridge cni0".
  template <typename Header>
  Request(int type, int flags, const Header& header, std::string what)
      : Request(type, flags, std::move(what)) {
    nlmsg_append(message_, const_cast<Header*>(&header), sizeof header, NLMSG_ALIGNTO);
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() { nlmsg_free(message_); }

  void PutU8(int type, uint8_t value) { nla_put_u8(message_, type, value); }
  void PutU32(int type, uint32_t value) { nla_put_u32(message_, type, value); }
  void PutString(int type, std::string_view value) {
    nla_put_string(message_, type, std::string(value).c_str());
  }
  void PutBytes(int type, std::string_view value) {
    nla_put(message_, type, static_cast<int>(value.size()), value.data());
  }
  template <typename Body>
  void Nest(int type, Body body) {
    nlattr* nest = nla_nest_start(message_, type);
    body();
    nla_nest_end(message_, nest);
  }
  template <typename T>
  void PutRaw(const T& value) {
    nlmsg_append(message_, const_cast<T*>(&value), sizeof value, NLMSG_ALIGNTO);
  }

  nl_msg* message() const { return message_; }  // for batches
  const std::string& what() const { return what_; }

  // Sends and waits for the kernel's acknowledgement. `on_reply` gets every message before that.
  Result<> Run(Socket& socket, const std::function<void(nlmsghdr*)>& on_reply = {});
  // For deletions. False: there was nothing to delete.
  Result<bool> RunIfThere(Socket& socket);

 private:
  Request(int type, int flags, std::string what);
  Result<> Once(Socket& socket, const std::function<void(nlmsghdr*)>& on_reply, bool& interrupted);
  nl_msg* message_;
  std::string what_;
};

}  // namespace keelson::netlink

// For tests: the client's side of TLS on a blocking socket, which trusts everybody.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace keelson::crypto {

class BlockingTls {
 public:
  // Shakes hands on a connected socket, which it does not own; aborts when that fails. Offers `protocol` alone by
  // ALPN; nothing when it is empty. The process ignores SIGPIPE from here on.
  BlockingTls(int fd, const std::string& protocol);
  ~BlockingTls();

  bool Send(std::string_view bytes);
  std::string Read();  // some bytes; empty: the connection has ended, in whatever way

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::crypto

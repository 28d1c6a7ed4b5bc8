// Internal to lib/nft: the nfnetlink socket.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"

struct mnl_socket;
struct nlmsghdr;

namespace keelson::nft {

class NetfilterSocket {
 public:
  static Result<NetfilterSocket> Open();
  NetfilterSocket(NetfilterSocket&& other) noexcept
      : socket_(std::exchange(other.socket_, nullptr)), buffer_(std::move(other.buffer_)) {}
  NetfilterSocket& operator=(NetfilterSocket&&) = delete;
  ~NetfilterSocket();

  uint32_t port() const;

  using Each = std::function<void(const nlmsghdr*)>;
  // Sends one datagram, as nf_tables requires for a batch; the send buffer grows as needed.
  Result<> Send(std::string_view bytes);
  // Passes queued messages to `each` and returns without waiting.
  Result<> ReceiveQueued(const Each& each);
  // Sends a request with string attributes and passes the answers to `each`. Blocks until the last one.
  Result<> Query(int type, uint16_t family, int flags, uint32_t seq,
                 const std::vector<std::pair<uint16_t, std::string>>& attributes, const Each& each);
  // The offset, in the refused message, of the attribute that the kernel objects to; 0: unknown.
  static uint32_t BadAttribute(const nlmsghdr* error);

 private:
  explicit NetfilterSocket(mnl_socket* socket) : socket_(socket), buffer_(128 << 10, '\0') {}
  Result<size_t> Receive(int flags);  // 0: nothing queued
  mnl_socket* socket_;
  std::string buffer_;
};

}  // namespace keelson::nft

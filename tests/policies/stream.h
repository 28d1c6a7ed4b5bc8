// For tests: datagrams from one place to another without end, so that a moment in which a closed way is open shows.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "lib/base/fd.h"
#include "lib/base/ip.h"
#include "lib/linux/netns.h"

namespace keelson::policies {

class Stream {
 public:
  // To a port of its own. Aborts when there is no socket.
  Stream(const linux::NetNs& from, const linux::NetNs& to, const IpAddress& address);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // What the datagrams carry from now on: 0 to 3. At first 0.
  void Mark(uint8_t mark) { mark_ = mark; }
  // Of those with the mark, so far.
  uint64_t Arrived(uint8_t mark = 0) const { return arrived_.at(mark); }
  // Blocks until so many more have been sent.
  void AwaitSent(uint64_t more) const;

 private:
  void Send(std::stop_token stop);
  void Receive(std::stop_token stop);
  UniqueFd out_, in_;
  std::atomic<uint8_t> mark_{0};
  std::atomic<uint64_t> sent_{0};
  std::array<std::atomic<uint64_t>, 4> arrived_{};
  std::jthread receiver_, sender_;
};

}  // namespace keelson::policies

// The servers of one suffix and their health. For one loop's thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/event/loop.h"
#include "lib/metrics/metrics.h"
#include "proxy/dns/exchange.h"

namespace keelson::proxy::dns {

class Upstream {
 public:
  Upstream(event::Loop& loop, Listen server, std::chrono::milliseconds probe_period);

  const Listen& server() const { return server_; }
  bool healthy() const { return failures_ < kFailures; }
  // Records the result of a question; `rcode` -1: no answer.
  void Count(int rcode, std::chrono::nanoseconds took);

 private:
  static constexpr int kFailures = 2;
  void Probe();

  event::Loop& loop_;
  const Listen server_;
  const std::chrono::milliseconds probe_period_;
  const std::string name_;  // "10.0.0.1:53"
  int failures_ = 0;
  event::Timer timer_;
  std::unique_ptr<Exchange> probe_;
};

struct UpstreamGroup {
  Name suffix;
  std::vector<std::shared_ptr<Upstream>> servers;
  size_t next = 0;  // the next round starts with this server
  bool looping = false;

  // The servers in the order of use: healthy ones first.
  std::vector<std::shared_ptr<Upstream>> Order();
  bool AnyHealthy() const;
};

}  // namespace keelson::proxy::dns

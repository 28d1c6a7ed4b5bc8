// Metrics with CoreDNS's names, for dashboards made for CoreDNS.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "lib/metrics/metrics.h"
#include "proxy/dns/message/message.h"

namespace keelson::proxy::dns {

enum class Answerer : uint8_t {
  kNone,
  kKubernetes,
  kForward,
  kAny
};  // CoreDNS's plugin that would have answered

// Counts requests and answers; lock-free. All instances count into the same families.
class DnsMetrics {
 public:
  DnsMetrics();

  // `type` 0: a malformed question.
  void CountRequest(bool tcp, bool v4, uint16_t type, size_t size);
  void CountCut() { cut_->Increment(); }  // an answer by AmplificationGuard
  void CountAnswer(Answerer by, bool tcp, Rcode rcode, size_t size, std::chrono::nanoseconds took);

 private:
  static constexpr size_t kTypes = 20, kRcodes = 17;
  static size_t TypeIndex(uint16_t type);

  std::array<std::array<std::array<metrics::Value*, kTypes>, 2>, 2> requests_{};  // by TCP, IPv4, type
  std::array<std::array<metrics::Value*, kRcodes>, 4> responses_{};
  std::array<metrics::Histogram*, 2> request_size_{}, response_size_{};  // by TCP
  metrics::Histogram* duration_;
  metrics::Value* cut_;
};

// Labels that every family shares.
inline constexpr char kServerLabel[] = "dns://:53";
inline constexpr char kZoneLabel[] = ".";

}  // namespace keelson::proxy::dns

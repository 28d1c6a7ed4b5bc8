// Answers a query: from the zone in memory at once, or later through the resolver. Has no sockets.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/base/ip.h"
#include "proxy/dns/amplification_guard.h"
#include "proxy/dns/answer_hold.h"
#include "proxy/dns/dns_metrics.h"
#include "proxy/dns/resolver.h"
#include "proxy/dns/zone/answer.h"

namespace keelson::proxy::dns {

// The client of a query.
class Asker {
 public:
  virtual ~Asker() = default;
  virtual bool tcp() const = 0;
  virtual bool v4() const = 0;
  virtual IpAddress source() const { return {}; }  // over UDP
  // Returns a function that sends a late answer and may outlive this object. The responder calls the function once,
  // on any thread.
  virtual std::function<void(std::string_view answer)> Later() = 0;
};

// Thread safe. Must outlive the pending questions of the resolver.
class Responder {
 public:
  // `resolver` may be null: names outside of the zone are refused. `hold` may be null: no answer waits.
  Responder(Resolver* resolver, Clock& clock, AnswerHold* hold = nullptr)
      : resolver_(resolver), hold_(hold), clock_(clock), guard_(clock) {}

  // Sets the zone. Before the first call every answer is SERVFAIL.
  void SetZone(std::shared_ptr<const Snapshot> zone) { zone_.store(std::move(zone)); }

  // Returns the size of the answer in `buffer`; 0: no answer, or a later one.
  size_t Handle(std::string_view packet, Asker& asker, std::span<char> buffer);

 private:
  struct Deferred;
  void Defer(std::string_view packet, const Query& query, std::shared_ptr<const Snapshot> zone,
             std::string_view target, Asker& asker, SteadyTime start);
  size_t Complete(const Deferred& deferred, const Resolved& resolved, std::span<char> buffer, Rcode& rcode);
  size_t Chase(const Deferred& deferred, const Query& query, const Resolved& resolved, std::span<char> buffer,
               Rcode& rcode);
  bool HoldsBack(const Query& query, Rcode rcode) const;
  size_t Error(const Query& query, std::span<char> buffer, Rcode rcode) const;
  // Truncates the answer in `buffer` if the guard demands it. Returns the size.
  size_t Guard(const IpAddress& source, const Query& query, size_t question, std::span<char> buffer,
               size_t size);

  Resolver* const resolver_;
  AnswerHold* const hold_;
  Clock& clock_;
  std::atomic<std::shared_ptr<const Snapshot>> zone_;
  std::atomic<uint32_t> turn_{0};
  AmplificationGuard guard_;
  DnsMetrics metrics_;
};

}  // namespace keelson::proxy::dns

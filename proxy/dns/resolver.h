// Answers questions outside of the zone.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "proxy/dns/message/stored_answer.h"

namespace keelson::proxy::dns {

struct Resolved {
  std::shared_ptr<const StoredAnswer> answer;  // null: no answer (SERVFAIL), or `refused`
  std::chrono::seconds age{0};
  bool stale = false;    // beyond its TTL, since no server answers
  bool refused = false;  // too many pending questions
};

class Resolver {
 public:
  using Done = std::function<void(const Resolved&)>;
  virtual ~Resolver() = default;
  // Calls `done` once, within the call or later on any thread. Thread safe.
  virtual void Resolve(const Question& question, Done done) = 0;
};

}  // namespace keelson::proxy::dns

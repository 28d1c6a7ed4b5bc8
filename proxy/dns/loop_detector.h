// Finds forwarding loops as CoreDNS's loop plugin does: by a random question that returns only through a loop. For
// one loop's thread only.
#pragma once

#include <chrono>
#include <memory>
#include <unordered_map>

#include "lib/event/loop.h"
#include "proxy/dns/upstream.h"

namespace keelson::proxy::dns {

class LoopDetector {
 public:
  // Waits `timeout` for each answer, and repeats an unanswered question after `pause`.
  LoopDetector(event::Loop& loop, std::chrono::milliseconds timeout, std::chrono::milliseconds pause);
  ~LoopDetector();

  // Asks each server of the group, and forgets earlier questions.
  void Probe(UpstreamGroup& group);
  // Whether this is one of those questions. A group whose questions return too often becomes `looping`.
  bool Sees(const Question& question);

 private:
  struct Asked;
  void Ask(Asked& asked);

  event::Loop& loop_;
  const std::chrono::milliseconds timeout_, pause_;
  std::unordered_map<Name, std::unique_ptr<Asked>> asked_;
};

}  // namespace keelson::proxy::dns

// Finds servers that lead back here, as CoreDNS's loop plugin does: by a random question that only comes back
// if they do. On one loop's thread only.
#pragma once

#include <chrono>
#include <memory>
#include <unordered_map>

#include "lib/event/loop.h"
#include "proxy/dns/upstream.h"

namespace keelson::proxy::dns {

class LoopDetector {
 public:
  // A question waits `timeout` for its answer; one that got none is asked again after `pause`.
  LoopDetector(event::Loop& loop, std::chrono::milliseconds timeout, std::chrono::milliseconds pause);
  ~LoopDetector();

  // Asks each of the group's servers; what was asked before is forgotten.
  void Probe(UpstreamGroup& group);
  // Whether it is one of those questions. Where it has come back too often its group is `looping` from now
  // on.
  bool Sees(const Question& question);

 private:
  struct Asked;
  void Ask(Asked& asked);

  event::Loop& loop_;
  const std::chrono::milliseconds timeout_, pause_;
  std::unordered_map<Name, std::unique_ptr<Asked>> asked_;
};

}  // namespace keelson::proxy::dns

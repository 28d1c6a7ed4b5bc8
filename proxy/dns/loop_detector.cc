#include "proxy/dns/loop_detector.h"

#include <sys/random.h>

#include "lib/base/log.h"

namespace keelson::proxy::dns {
namespace {

constexpr int kSightings = 2;  // the first may be a client's own luck; CoreDNS waits for the same
constexpr int kTries = 12;     // of a question that nobody answers: half a minute

Name RandomName(const Name& parent) {
  uint64_t parts[2] = {};
  while (::getrandom(parts, sizeof parts, 0) != sizeof parts) {
  }
  return Join(std::to_string(parts[0]), Join(std::to_string(parts[1]), parent));
}

}  // namespace

struct LoopDetector::Asked {
  Asked(event::Loop& loop, UpstreamGroup& g, const Listen& s, Name name)
      : group(g), server(s), question{std::move(name), kTypeHinfo}, again(loop) {}

  UpstreamGroup& group;
  const Listen server;
  const Question question;
  int sightings = 0, left = kTries;
  std::unique_ptr<Exchange> exchange;
  event::Timer again;
};

LoopDetector::LoopDetector(event::Loop& loop, std::chrono::milliseconds timeout,
                           std::chrono::milliseconds pause)
    : loop_(loop), timeout_(timeout), pause_(pause) {}
LoopDetector::~LoopDetector() = default;

void LoopDetector::Probe(UpstreamGroup& group) {
  std::erase_if(asked_, [&](const auto& entry) { return &entry.second->group == &group; });
  for (const auto& upstream : group.servers) {
    Name name = RandomName(group.suffix);
    if (!IsName(name)) continue;
    auto& asked = asked_[name];
    asked = std::make_unique<Asked>(loop_, group, upstream->server(), name);
    Ask(*asked);
  }
}

// Until it has been answered without having been seen here, or seen too often. This server may not be
// reachable yet when the first one is sent; and those in between may ask once for several who ask the same.
void LoopDetector::Ask(Asked& asked) {
  --asked.left;
  asked.exchange = Exchange::Start(
      loop_, asked.server, asked.question, timeout_, [this, &asked](Result<StoredAnswer> answer) {
        bool leads_elsewhere = answer && asked.sightings == 0;
        if (leads_elsewhere || asked.left == 0 || asked.group.looping) return;
        asked.again.Start(answer ? std::chrono::milliseconds(0) : pause_, [this, &asked] { Ask(asked); });
      });
}

bool LoopDetector::Sees(const Question& question) {
  if (question.type != kTypeHinfo) return false;
  auto found = asked_.find(question.name);
  if (found == asked_.end()) return false;
  Asked& asked = *found->second;
  if (++asked.sightings >= kSightings && !asked.group.looping) {
    asked.group.looping = true;
    log::Error("DNS questions come back: the servers lead to this one, and are not asked any more",
               {{"zone", NameText(asked.group.suffix)}});
  }
  return true;
}

}  // namespace keelson::proxy::dns

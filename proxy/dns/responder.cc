#include "proxy/dns/responder.h"

#include <deque>
#include <vector>

namespace keelson::proxy::dns {
namespace {

constexpr uint32_t kStaleTtl = 30;  // RFC 8767, 4

}  // namespace

// A query whose answer takes longer; the packet outlives the caller's buffer.
struct Responder::Deferred {
  std::string packet;
  std::shared_ptr<const Snapshot> zone;  // what its CNAME records come from; null: it is not of the zone
  bool tcp = false;
  IpAddress source;
  std::function<void(std::string_view)> send;
  SteadyTime start;
};

size_t Responder::Error(const Query& query, std::span<char> buffer, Rcode rcode) const {
  return AnswerWriter(query, buffer, buffer.size()).Finish(rcode, false);
}

size_t Responder::Guard(const IpAddress& source, const Query& query, size_t question, std::span<char> buffer,
                        size_t size) {
  if (guard_.Admit(source, question, size)) return size;
  metrics_.CountCut();
  AnswerWriter writer(query, buffer, buffer.size());
  writer.Cut();
  return writer.Finish(Rcode::kNoError, false);
}

size_t Responder::Handle(std::string_view packet, Asker& asker, std::span<char> buffer) {
  SteadyTime start = clock_.SteadyNow();
  Query query;
  Rcode rcode = Rcode::kNoError;
  Parsed parsed = ParseQuery(packet, query, rcode);
  if (parsed == Parsed::kDrop) return 0;
  metrics_.CountRequest(asker.tcp(), asker.v4(), query.type, packet.size());
  Answerer by = Answerer::kNone;
  size_t size = 0;
  std::shared_ptr<const Snapshot> zone = zone_.load();
  if (parsed == Parsed::kRefuse || !zone) {
    if (parsed != Parsed::kRefuse) rcode = Rcode::kServFail;
    size = Error(query, buffer, rcode);
  } else {
    AnswerWriter writer(query, buffer, query.Limit(asker.tcp()));
    uint32_t turn = turn_.fetch_add(1, std::memory_order_relaxed);
    ZoneAnswer answer = AnswerFromZone(*zone, query, turn, writer);
    if (answer.kind == ZoneAnswer::kAnswered) {
      rcode = answer.rcode;
      by = query.type == kTypeAny ? Answerer::kAny : Answerer::kKubernetes;
      size = writer.Finish(rcode, true);
    } else if (resolver_) {
      Defer(packet, query, answer.target.empty() ? nullptr : zone, answer.target, asker, start);
      return 0;
    } else {
      rcode = Rcode::kRefused;
      size = Error(query, buffer, rcode);
    }
  }
  if (!asker.tcp()) size = Guard(asker.source(), query, packet.size(), buffer, size);
  metrics_.CountAnswer(by, asker.tcp(), rcode, size, clock_.SteadyNow() - start);
  if (by != Answerer::kKubernetes || !HoldsBack(query, rcode)) return size;
  hold_->Hold(std::string(buffer.data(), size), asker.Later());
  return 0;
}

bool Responder::HoldsBack(const Query& query, Rcode rcode) const {
  const bool asks_for_addresses = query.type == kTypeA || query.type == kTypeAaaa;
  return hold_ && asks_for_addresses && rcode == Rcode::kNoError &&
         hold_->Holds(query.name(), query.type == kTypeA);
}

void Responder::Defer(std::string_view packet, const Query& query, std::shared_ptr<const Snapshot> zone,
                      std::string_view target, Asker& asker, SteadyTime start) {
  auto deferred = std::make_shared<Deferred>();
  deferred->packet = packet;
  deferred->zone = std::move(zone);
  deferred->tcp = asker.tcp();
  deferred->source = asker.source();
  deferred->send = asker.Later();
  deferred->start = start;
  Question question{Name(deferred->zone ? target : query.name()), query.type, query.dnssec_ok,
                    query.checking_disabled};
  resolver_->Resolve(question, [this, deferred](const Resolved& resolved) {
    std::vector<char> buffer(deferred->tcp ? kMaxTcpSize : kMaxUdpSize);
    Rcode rcode = Rcode::kServFail;
    size_t size = Complete(*deferred, resolved, buffer, rcode);
    Query received;
    Rcode unused;
    ParseQuery(deferred->packet, received, unused);
    if (!deferred->tcp) {
      size = Guard(deferred->source, received, deferred->packet.size(), buffer, size);
    }
    metrics_.CountAnswer(Answerer::kForward, deferred->tcp, rcode, size,
                         clock_.SteadyNow() - deferred->start);
    if (HoldsBack(received, rcode)) {
      hold_->Hold(std::string(buffer.data(), size), deferred->send);
    } else {
      deferred->send({buffer.data(), size});
    }
  });
}

size_t Responder::Complete(const Deferred& deferred, const Resolved& resolved, std::span<char> buffer,
                           Rcode& rcode) {
  Query query;
  Rcode unused;
  ParseQuery(deferred.packet, query, unused);  // which went well before
  if (!resolved.answer) {
    rcode = resolved.refused ? Rcode::kRefused : Rcode::kServFail;
    return Error(query, buffer, rcode);
  }
  if (deferred.zone) return Chase(deferred, query, resolved, buffer, rcode);
  rcode = resolved.answer->rcode;
  size_t limit = query.Limit(deferred.tcp);
  if (resolved.stale) return WriteStoredWithTtl(*resolved.answer, query, kStaleTtl, buffer, limit);
  return WriteStored(*resolved.answer, query, resolved.age, buffer, limit);
}

// The zone's CNAMEs, and behind them what others say about where they lead.
size_t Responder::Chase(const Deferred& deferred, const Query& query, const Resolved& resolved,
                        std::span<char> buffer, Rcode& rcode) {
  std::deque<Name> names;
  AnswerWriter writer(query, buffer, query.Limit(deferred.tcp));
  AnswerFromZone(*deferred.zone, query, 0, writer);
  rcode = resolved.answer->rcode;
  if (!AppendStored(*resolved.answer, resolved.age, writer, names)) {
    rcode = Rcode::kServFail;
    return Error(query, buffer, rcode);
  }
  return writer.Finish(rcode, true);
}

}  // namespace keelson::proxy::dns

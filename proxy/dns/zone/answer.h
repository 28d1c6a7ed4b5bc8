// Answers from a zone's snapshot.
#pragma once

#include <cstdint>
#include <string_view>

#include "proxy/dns/message/message.h"
#include "proxy/dns/zone/zone.h"

namespace keelson::proxy::dns {

struct ZoneAnswer {
  enum Kind {
    kAnswered,  // the writer holds the answer; finish it with `rcode`, authoritative
    kNotMine,   // not a name of the zone: others must be asked
    kChase,     // the writer holds CNAME records; the rest is what others say about `target`
  };
  Kind kind = kAnswered;
  Rcode rcode = Rcode::kNoError;
  std::string_view target = {};  // in the snapshot
};

// `query` came through ParseQuery(). `turn` says with which of several addresses the answer begins. The
// snapshot must live until the writer has finished.
ZoneAnswer AnswerFromZone(const Snapshot& zone, const Query& query, uint32_t turn, AnswerWriter& writer);

}  // namespace keelson::proxy::dns

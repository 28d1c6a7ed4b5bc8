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
    kNotMine,   // not a name of the zone: ask other servers
    kChase,     // the writer has CNAME records; other servers resolve `target`
  };
  Kind kind = kAnswered;
  Rcode rcode = Rcode::kNoError;
  std::string_view target = {};  // in the snapshot
};

// `query` is from ParseQuery(). `turn` selects the first of several addresses. The snapshot must live until the writer
// has finished.
ZoneAnswer AnswerFromZone(const Snapshot& zone, const Query& query, uint32_t turn, AnswerWriter& writer);

}  // namespace keelson::proxy::dns

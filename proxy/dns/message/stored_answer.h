// Answers of other servers: checked once, stored, and sent many times.
//
// ldns parses the answer, knows every record type and refuses malformed messages. The stored form is the message that
// ldns writes, without OPT, and the offsets of its TTLs. Sending it is a copy with the id, flags, TTLs and question of
// the client.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "proxy/dns/message/message.h"

namespace keelson::proxy::dns {

// A question to other servers, as a key.
struct Question {
  Name name;
  uint16_t type = 0;
  bool dnssec_ok = false, checking_disabled = false;
  auto operator<=>(const Question&) const = default;
};

struct QuestionHash {
  size_t operator()(const Question& q) const {
    return std::hash<std::string_view>()(q.name) ^
           (static_cast<size_t>(q.type) << 2 | q.dnssec_ok << 1 | q.checking_disabled) * 0x9E3779B97F4A7C15u;
  }
};

struct StoredAnswer {
  std::string wire;  // header, question, records; no OPT
  std::vector<uint16_t> ttl_offsets;
  uint16_t question_size = 0;
  Rcode rcode = Rcode::kNoError;
  bool negative = false;   // NXDOMAIN, or no record of the type
  bool cacheable = false;  // an answer, or a denial with its SOA (RFC 2308)
  std::chrono::seconds ttl{0};

  size_t size() const { return sizeof(*this) + wire.capacity() + 2 * ttl_offsets.capacity(); }
};

// A question in wire form, with RD and EDNS.
std::string QuestionPacket(const Question& question, uint16_t id);

// Parses `reply`, the answer to `question` with this `id`. kInvalid: malformed, or the answer to another question.
Result<StoredAnswer> StoreAnswer(std::string_view reply, const Question& question, uint16_t id);
bool IsTruncated(std::string_view reply);

// Writes the answer for `query` into `buffer`, with TTLs reduced by `age`. An answer larger than `limit` is truncated
// to its question, with TC.
size_t WriteStored(const StoredAnswer& answer, const Query& query, std::chrono::seconds age,
                   std::span<char> buffer, size_t limit);
// The same TTL for all records, as for stale ones (RFC 8767).
size_t WriteStoredWithTtl(const StoredAnswer& answer, const Query& query, uint32_t ttl,
                          std::span<char> buffer, size_t limit);

// Adds the answer and authority records to `writer`. `keep` owns names until the writer has finished.
Result<> AppendStored(const StoredAnswer& answer, std::chrono::seconds age, AnswerWriter& writer,
                      std::deque<Name>& keep);

}  // namespace keelson::proxy::dns

// Answers of other servers, as they are checked once, kept and given out many times.
//
// What comes from outside goes through ldns, which knows every record type and refuses what is malformed;
// written anew by it, without OPT, the message is kept as bytes with the places of its TTLs. Giving it out is
// then a copy with the id, flags, TTLs and question of whoever asks.
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

// What is asked of other servers; equal ones are one.
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

// `reply` is an answer to `question` that was asked with `id`. kInvalid: malformed, or an answer to something
// else.
Result<StoredAnswer> StoreAnswer(std::string_view reply, const Question& question, uint16_t id);
bool IsTruncated(std::string_view reply);

// Writes the answer for `query` into `buffer`; `age` is taken off the TTLs. One that is larger than `limit`
// is cut down to its question, with TC.
size_t WriteStored(const StoredAnswer& answer, const Query& query, std::chrono::seconds age,
                   std::span<char> buffer, size_t limit);
// The same TTL for all records, as for stale ones (RFC 8767).
size_t WriteStoredWithTtl(const StoredAnswer& answer, const Query& query, uint32_t ttl,
                          std::span<char> buffer, size_t limit);

// Adds the answer and authority records behind what `writer` holds. `keep` owns names until the writer has
// finished.
Result<> AppendStored(const StoredAnswer& answer, std::chrono::seconds age, AnswerWriter& writer,
                      std::deque<Name>& keep);

}  // namespace keelson::proxy::dns

// Parses queries and writes answers (RFC 1035, EDNS0: RFC 6891), for answers from memory.
//
// This is our own code: it parses a question into a struct on the stack and writes the answer into the caller's
// buffer, without an allocation. ldns, which handles the answers of other servers (stored_answer.h), builds a tree of
// heap objects for each record. That takes some microseconds for a short answer, the whole time budget of a query.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "proxy/dns/message/name.h"

namespace keelson::proxy::dns {

enum Type : uint16_t {
  kTypeA = 1,
  kTypeNs = 2,
  kTypeCname = 5,
  kTypeSoa = 6,
  kTypePtr = 12,
  kTypeHinfo = 13,
  kTypeTxt = 16,
  kTypeAaaa = 28,
  kTypeSrv = 33,
  kTypeOpt = 41,
  kTypeIxfr = 251,
  kTypeAxfr = 252,
  kTypeAny = 255,
};
enum Class : uint16_t { kClassIn = 1 };

enum class Rcode : uint16_t {
  kNoError = 0,
  kFormErr = 1,
  kServFail = 2,
  kNxDomain = 3,
  kNotImp = 4,
  kRefused = 5,
  kBadVers = 16,  // its upper bits travel in the OPT record
};
std::string_view RcodeName(Rcode rcode);  // "NOERROR"
// "A"; "other" for types without a label of their own in metrics.
std::string_view TypeName(uint16_t type);

constexpr size_t kHeaderSize = 12;
constexpr size_t kMinUdpSize = 512;   // the limit of clients without EDNS
constexpr size_t kMaxUdpSize = 1232;  // fits an IPv6 packet of the least MTU: no fragments, little to amplify
constexpr size_t kMaxTcpSize = 65535;

struct Query {
  uint16_t id = 0;
  bool recursion_desired = false, checking_disabled = false;
  uint8_t opcode = 0;
  uint16_t type = 0, qclass = 0;
  std::string_view question;  // name, type and class in the packet; empty: malformed
  std::array<char, kMaxNameSize> name_bytes;
  uint8_t name_size = 0;
  bool edns = false, dnssec_ok = false;
  uint8_t edns_version = 0;
  uint16_t udp_size = kMinUdpSize;

  std::string_view name() const { return {name_bytes.data(), name_size}; }  // lower-cased
  // The size limit of the answer.
  size_t Limit(bool tcp) const;
};

enum class Parsed {
  kQuery,   // answer it
  kRefuse,  // answer with the error only
  kDrop,    // not a question: an answer could start a loop
};
// `query` refers to `packet`. With kRefuse, `rcode` has the error. Questions have no compression pointers.
Parsed ParseQuery(std::string_view packet, Query& query, Rcode& rcode);

enum class Section { kAnswer = 0, kAuthority = 1, kAdditional = 2 };

// Writes one answer to `query`, of at most `limit` bytes, into `buffer` (at least that large). A record that
// does not fit sets TC and ends the answer; in the additional section it is left out silently.
// The caller keeps names alive until Finish().
class AnswerWriter {
 public:
  AnswerWriter(const Query& query, std::span<char> buffer, size_t limit);

  static constexpr uint16_t kQuestionName = kHeaderSize;  // offset of the question's name in every answer
  // Offset of a suffix of the question's name.
  uint16_t SuffixOffset(std::string_view suffix) const {
    return static_cast<uint16_t>(kHeaderSize + query_.name_size - suffix.size());
  }

  // A record whose owner is a name at `owner_offset`.
  bool AddAt(Section section, uint16_t owner_offset, uint16_t type, uint32_t ttl, std::string_view rdata);
  // Whole records, `size` bytes each, as RecordOf() made them: as many as fit.
  void AddRecords(Section section, std::string_view records, size_t size);
  // A record with any owner, compressed. `target`, when not empty, is a name that ends the data; it is
  // compressed as well if `compress_target` (never in SRV, RFC 2782).
  bool Add(Section section, std::string_view owner, uint16_t type, uint32_t ttl, std::string_view rdata,
           std::string_view target = {}, bool compress_target = false);

  bool truncated() const { return truncated_; }
  uint16_t count(Section section) const { return counts_[static_cast<size_t>(section)]; }
  // Removes all records.
  void Clear();
  // Removes all records and sets TC.
  void Cut();
  // Completes the header and the OPT record. Returns the size of the answer.
  size_t Finish(Rcode rcode, bool authoritative, bool recursion_available = true);

 private:
  struct Known {
    std::string_view name;
    uint16_t offset;
  };
  bool Fits(Section section, size_t size);
  void Put(std::string_view bytes);
  void Put16(uint16_t value);
  void PutName(std::string_view name, bool compress);
  void Learn(std::string_view name, size_t offset);
  size_t NameSize(std::string_view name, bool compress) const;
  const Known* Find(std::string_view name) const;
  void LearnQuestion();

  const Query& query_;
  char* const buffer_;
  size_t limit_, size_ = 0, records_begin_ = 0;
  std::array<uint16_t, 3> counts_{};
  bool truncated_ = false;
  std::array<Known, 48> known_;
  size_t known_count_ = 0;
};

// A record owned by the question's name, for AddRecords().
std::string RecordOf(uint16_t type, uint32_t ttl, std::string_view rdata);

// Two bytes in network order.
inline uint16_t Get16(std::string_view bytes, size_t at) {
  return static_cast<uint16_t>(static_cast<uint8_t>(bytes[at]) << 8 | static_cast<uint8_t>(bytes[at + 1]));
}
inline void Set16(char* at, uint16_t value) {
  at[0] = static_cast<char>(value >> 8);
  at[1] = static_cast<char>(value);
}
inline void Set32(char* at, uint32_t value) {
  Set16(at, static_cast<uint16_t>(value >> 16));
  Set16(at + 2, static_cast<uint16_t>(value));
}
inline void Append16(std::string& out, uint16_t value) {
  out += static_cast<char>(value >> 8);
  out += static_cast<char>(value);
}
inline void Append32(std::string& out, uint32_t value) {
  Append16(out, static_cast<uint16_t>(value >> 16));
  Append16(out, static_cast<uint16_t>(value));
}

}  // namespace keelson::proxy::dns

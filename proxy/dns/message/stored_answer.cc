#include "proxy/dns/message/stored_answer.h"

#include <ldns/ldns.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace keelson::proxy::dns {
namespace {

constexpr uint16_t kResponse = 0x8000, kTruncated = 0x0200, kRecursionDesired = 0x0100;
constexpr uint16_t kAuthentic = 0x0020, kCheckingDisabled = 0x0010;
constexpr uint32_t kMaxTtl = 0x7FFFFFFF;  // RFC 2181, 8: larger ones are zero

struct PacketFree {
  void operator()(ldns_pkt* packet) const { ldns_pkt_free(packet); }
};
using Packet = std::unique_ptr<ldns_pkt, PacketFree>;

Error LdnsError(ldns_status status) {
  return Error(Code::kInvalid, std::string("malformed DNS answer: ") + ldns_get_errorstr_by_id(status));
}

Result<Packet> Parse(std::string_view wire) {
  ldns_pkt* raw = nullptr;
  ldns_status status = ldns_wire2pkt(&raw, reinterpret_cast<const uint8_t*>(wire.data()), wire.size());
  if (status != LDNS_STATUS_OK) return LdnsError(status);
  return Packet(raw);
}

std::string_view Wire(const ldns_rdf* rdf) {
  return {reinterpret_cast<const char*>(ldns_rdf_data(rdf)), ldns_rdf_size(rdf)};
}

bool IsQuestion(const ldns_pkt* packet, const Question& question) {
  const ldns_rr_list* list = ldns_pkt_question(packet);
  if (!list || ldns_rr_list_rr_count(list) != 1) return false;
  const ldns_rr* asked = ldns_rr_list_rr(list, 0);
  Name name(Wire(ldns_rr_owner(asked)));
  std::transform(name.begin(), name.end(), name.begin(), Lower);
  return name == question.name && ldns_rr_get_type(asked) == question.type &&
         ldns_rr_get_class(asked) == LDNS_RR_CLASS_IN;
}

// The message without its OPT record, with names compressed anew.
Result<std::string> WithoutOpt(const ldns_pkt* packet) {
  Packet out(ldns_pkt_new());
  ldns_pkt_set_flags(out.get(), LDNS_QR);
  ldns_pkt_set_ad(out.get(), ldns_pkt_ad(packet));
  ldns_pkt_set_rcode(out.get(), ldns_pkt_get_rcode(packet));
  for (ldns_pkt_section section :
       {LDNS_SECTION_QUESTION, LDNS_SECTION_ANSWER, LDNS_SECTION_AUTHORITY, LDNS_SECTION_ADDITIONAL}) {
    std::unique_ptr<ldns_rr_list, void (*)(ldns_rr_list*)> records(
        ldns_pkt_get_section_clone(packet, section), ldns_rr_list_free);
    for (size_t i = 0; records && i < ldns_rr_list_rr_count(records.get()); ++i) {
      ldns_pkt_push_rr(out.get(), section, ldns_rr_list_rr(records.get(), i));  // which takes it
    }
  }
  uint8_t* bytes = nullptr;
  size_t size = 0;
  ldns_status status = ldns_pkt2wire(&bytes, out.get(), &size);
  std::unique_ptr<uint8_t, void (*)(void*)> owned(bytes, std::free);
  if (status != LDNS_STATUS_OK) return LdnsError(status);
  return std::string(reinterpret_cast<const char*>(bytes), size);
}

size_t SkipName(std::string_view wire, size_t at) {
  while (at < wire.size()) {
    size_t label = static_cast<uint8_t>(wire[at]);
    if (label >= 0xC0) return at + 2;
    at += 1 + label;
    if (label == 0) return at;
  }
  return wire.size();
}

// Of a message that ldns has written.
void FindTtls(StoredAnswer& answer) {
  const std::string& wire = answer.wire;
  size_t at = SkipName(wire, kHeaderSize) + 4;
  answer.question_size = static_cast<uint16_t>(at - kHeaderSize);
  size_t records = size_t{Get16(wire, 6)} + Get16(wire, 8) + Get16(wire, 10);
  for (size_t i = 0; i < records; ++i) {
    at = SkipName(wire, at);
    if (at + 10 > wire.size()) return;
    answer.ttl_offsets.push_back(static_cast<uint16_t>(at + 4));
    at += 10 + Get16(wire, at + 8);
  }
}

uint32_t Ttl(const ldns_rr* record) {
  uint32_t ttl = ldns_rr_ttl(record);
  return ttl > kMaxTtl ? 0 : ttl;
}

uint32_t LeastTtl(const ldns_rr_list* list, uint32_t least) {
  for (size_t i = 0; list && i < ldns_rr_list_rr_count(list); ++i) {
    least = std::min(least, Ttl(ldns_rr_list_rr(list, i)));
  }
  return least;
}

// The lesser of the SOA's TTL and its last field (RFC 2308, 5); false without a SOA.
bool NegativeTtl(const ldns_pkt* packet, uint32_t& ttl) {
  const ldns_rr_list* list = ldns_pkt_authority(packet);
  for (size_t i = 0; list && i < ldns_rr_list_rr_count(list); ++i) {
    const ldns_rr* record = ldns_rr_list_rr(list, i);
    if (ldns_rr_get_type(record) != LDNS_RR_TYPE_SOA || ldns_rr_rd_count(record) < 7) continue;
    ttl = std::min(Ttl(record), ldns_rdf2native_int32(ldns_rr_rdf(record, 6)));
    return true;
  }
  return false;
}

bool HasType(const ldns_rr_list* list, uint16_t type) {
  for (size_t i = 0; list && i < ldns_rr_list_rr_count(list); ++i) {
    if (type == kTypeAny || ldns_rr_get_type(ldns_rr_list_rr(list, i)) == type) return true;
  }
  return false;
}

void Judge(const ldns_pkt* packet, const Question& question, StoredAnswer& out) {
  bool has = HasType(ldns_pkt_answer(packet), question.type);
  out.negative = out.rcode == Rcode::kNxDomain || (out.rcode == Rcode::kNoError && !has);
  uint32_t ttl = 0;
  if (out.negative) {
    out.cacheable = NegativeTtl(packet, ttl);
    ttl = LeastTtl(ldns_pkt_answer(packet), ttl);  // of CNAMEs on the way
  } else if (out.rcode == Rcode::kNoError) {
    out.cacheable = true;
    ttl = LeastTtl(ldns_pkt_authority(packet), LeastTtl(ldns_pkt_answer(packet), kMaxTtl));
  }
  out.ttl = std::chrono::seconds(ttl);
}

// A denial's SOA says by its TTL how long the denial holds, so that it does not hold anew for whoever is
// given it (RFC 2308, 5).
void LimitSoa(StoredAnswer& answer) {
  if (!answer.negative || !answer.cacheable) return;
  for (uint16_t at : answer.ttl_offsets) {
    if (Get16(answer.wire, at - 4u) != kTypeSoa) continue;
    uint32_t ttl = static_cast<uint32_t>(Get16(answer.wire, at)) << 16 | Get16(answer.wire, at + 2u);
    Set32(answer.wire.data() + at, std::min(ttl, static_cast<uint32_t>(answer.ttl.count())));
  }
}

template <typename NewTtl>
size_t WriteWith(const StoredAnswer& answer, const Query& query, std::span<char> buffer, size_t limit,
                 NewTtl new_ttl) {
  size_t opt = query.edns ? 11 : 0;
  bool fits = answer.wire.size() + opt <= std::min(limit, buffer.size());
  bool same = answer.question_size == query.question.size();
  if (!fits || !same) {
    AnswerWriter writer(query, buffer, limit);
    size_t size = writer.Finish(same ? answer.rcode : Rcode::kServFail, false);
    if (same) Set16(buffer.data() + 2, Get16({buffer.data(), size}, 2) | kTruncated);
    return size;
  }
  // The OPT record and the header are the writer's; the records are what the upstream server gave.
  AnswerWriter writer(query, buffer, buffer.size());
  size_t empty = writer.Finish(answer.rcode, false);
  std::string_view header_and_opt(buffer.data(), empty);
  std::string tail(header_and_opt.substr(empty - opt));
  uint16_t flags = Get16(header_and_opt, 2);
  if (Get16(answer.wire, 2) & kAuthentic) flags |= kAuthentic;
  size_t records_at = kHeaderSize + answer.question_size;
  std::memcpy(buffer.data() + records_at, answer.wire.data() + records_at, answer.wire.size() - records_at);
  std::memcpy(buffer.data() + 6, answer.wire.data() + 6, 6);
  Set16(buffer.data() + 2, flags);
  Set16(buffer.data() + 10, static_cast<uint16_t>(Get16(answer.wire, 10) + (query.edns ? 1 : 0)));
  std::memcpy(buffer.data() + answer.wire.size(), tail.data(), tail.size());
  for (uint16_t at : answer.ttl_offsets) {
    uint32_t ttl = static_cast<uint32_t>(Get16(answer.wire, at)) << 16 | Get16(answer.wire, at + 2);
    Set32(buffer.data() + at, new_ttl(ttl));
  }
  return answer.wire.size() + tail.size();
}

}  // namespace

std::string QuestionPacket(const Question& question, uint16_t id) {
  std::string out;
  uint16_t flags = kRecursionDesired | (question.checking_disabled ? kCheckingDisabled : 0);
  for (uint16_t word : {id, flags, uint16_t{1}, uint16_t{0}, uint16_t{0}, uint16_t{1}}) Append16(out, word);
  out += question.name;
  Append16(out, question.type);
  Append16(out, kClassIn);
  out += '\0';
  Append16(out, kTypeOpt);
  Append16(out, kMaxUdpSize);
  Append16(out, 0);
  Append16(out, question.dnssec_ok ? 0x8000 : 0);
  Append16(out, 0);
  return out;
}

bool IsTruncated(std::string_view reply) {
  return reply.size() >= kHeaderSize && (Get16(reply, 2) & kTruncated);
}

Result<StoredAnswer> StoreAnswer(std::string_view reply, const Question& question, uint16_t id) {
  if (reply.size() < kHeaderSize || Get16(reply, 0) != id || !(Get16(reply, 2) & kResponse)) {
    return Error(Code::kInvalid, "not an answer to this question");
  }
  KEELSON_ASSIGN_OR_RETURN(Packet packet, Parse(reply));
  if (!IsQuestion(packet.get(), question)) return Error(Code::kInvalid, "not an answer to this question");
  StoredAnswer out;
  out.rcode = static_cast<Rcode>(ldns_pkt_get_rcode(packet.get()));
  KEELSON_ASSIGN_OR_RETURN(out.wire, WithoutOpt(packet.get()));
  if (out.wire.size() > kMaxTcpSize) return Error(Code::kTooLarge, "DNS answer is too large");
  FindTtls(out);
  Judge(packet.get(), question, out);
  LimitSoa(out);
  return out;
}

size_t WriteStored(const StoredAnswer& answer, const Query& query, std::chrono::seconds age,
                   std::span<char> buffer, size_t limit) {
  auto off = static_cast<uint32_t>(std::clamp<int64_t>(age.count(), 0, kMaxTtl));
  return WriteWith(answer, query, buffer, limit, [off](uint32_t ttl) { return ttl > off ? ttl - off : 0; });
}

size_t WriteStoredWithTtl(const StoredAnswer& answer, const Query& query, uint32_t ttl,
                          std::span<char> buffer, size_t limit) {
  return WriteWith(answer, query, buffer, limit, [ttl](uint32_t) { return ttl; });
}

Result<> AppendStored(const StoredAnswer& answer, std::chrono::seconds age, AnswerWriter& writer,
                      std::deque<Name>& keep) {
  KEELSON_ASSIGN_OR_RETURN(Packet packet, Parse(answer.wire));
  auto off = static_cast<uint32_t>(std::clamp<int64_t>(age.count(), 0, kMaxTtl));
  auto append = [&](Section section, const ldns_rr_list* list) {
    for (size_t i = 0; list && i < ldns_rr_list_rr_count(list); ++i) {
      const ldns_rr* record = ldns_rr_list_rr(list, i);
      std::string rdata;
      for (size_t field = 0; field < ldns_rr_rd_count(record); ++field) {
        rdata += Wire(ldns_rr_rdf(record, field));
      }
      Name& owner = keep.emplace_back(Wire(ldns_rr_owner(record)));
      std::transform(owner.begin(), owner.end(), owner.begin(), Lower);
      uint32_t ttl = Ttl(record);
      writer.Add(section, owner, ldns_rr_get_type(record), ttl > off ? ttl - off : 0, rdata);
    }
  };
  append(Section::kAnswer, ldns_pkt_answer(packet.get()));
  append(Section::kAuthority, ldns_pkt_authority(packet.get()));
  return {};
}

}  // namespace keelson::proxy::dns

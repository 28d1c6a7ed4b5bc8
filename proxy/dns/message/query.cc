#include <algorithm>

#include "proxy/dns/message/message.h"

namespace keelson::proxy::dns {
namespace {

constexpr uint16_t kResponse = 0x8000, kRecursionDesired = 0x0100, kCheckingDisabled = 0x0010;
constexpr uint16_t kDnssecOk = 0x8000;
constexpr uint16_t kFirstMetaType = 249, kLastMetaType = 254;  // TKEY to MAILA: not data to be asked for
constexpr uint16_t kMaxAdditional = 2;                         // OPT and a signature

// The name at `at`, lower-cased into `query`; the offset behind it, 0 when malformed.
size_t ParseQuestionName(std::string_view packet, size_t at, Query& query) {
  size_t size = 0;
  while (at < packet.size()) {
    size_t label = static_cast<uint8_t>(packet[at]);
    if (label > kMaxLabelSize || at + 1 + label > packet.size() || size + 1 + label > kMaxNameSize) return 0;
    query.name_bytes[size++] = static_cast<char>(label);
    if (label == 0) {
      query.name_size = static_cast<uint8_t>(size);
      return at + 1;
    }
    for (size_t i = 1; i <= label; ++i) query.name_bytes[size++] = Lower(packet[at + i]);
    at += 1 + label;
  }
  return 0;
}

// The offset behind a name that may end in a pointer, 0 when malformed.
size_t SkipName(std::string_view packet, size_t at) {
  while (at < packet.size()) {
    size_t label = static_cast<uint8_t>(packet[at]);
    if (label == 0) return at + 1;
    if (label >= 0xC0) return at + 2 <= packet.size() ? at + 2 : 0;
    if (label > kMaxLabelSize) return 0;
    at += 1 + label;
  }
  return 0;
}

bool ParseOpt(std::string_view packet, size_t owner, size_t at, Query& query) {
  if (query.edns || packet[owner] != '\0') return false;
  query.edns = true;
  query.udp_size = Get16(packet, at + 2);
  query.edns_version = static_cast<uint8_t>(packet[at + 5]);
  query.dnssec_ok = (Get16(packet, at + 6) & kDnssecOk) != 0;
  return true;
}

bool ParseAdditional(std::string_view packet, size_t at, uint16_t count, Query& query) {
  for (uint16_t i = 0; i < count; ++i) {
    size_t owner = at;
    at = SkipName(packet, at);
    if (at == 0 || at + 10 > packet.size()) return false;
    if (Get16(packet, at) == kTypeOpt && !ParseOpt(packet, owner, at, query)) return false;
    at += 10 + Get16(packet, at + 8);
    if (at > packet.size()) return false;
  }
  return true;
}

Rcode Judge(const Query& query) {
  if (query.edns_version != 0) return Rcode::kBadVers;
  if (query.qclass != kClassIn) return Rcode::kRefused;
  if (query.type == kTypeAxfr || query.type == kTypeIxfr) return Rcode::kRefused;
  if (query.type >= kFirstMetaType && query.type <= kLastMetaType) return Rcode::kNotImp;
  return query.type == kTypeOpt || query.type == 0 ? Rcode::kFormErr : Rcode::kNoError;
}

}  // namespace

size_t Query::Limit(bool tcp) const {
  if (tcp) return kMaxTcpSize;
  return edns ? std::clamp<size_t>(udp_size, kMinUdpSize, kMaxUdpSize) : kMinUdpSize;
}

Parsed ParseQuery(std::string_view packet, Query& query, Rcode& rcode) {
  if (packet.size() < kHeaderSize) return Parsed::kDrop;
  uint16_t flags = Get16(packet, 2);
  if (flags & kResponse) return Parsed::kDrop;
  query.id = Get16(packet, 0);
  query.recursion_desired = (flags & kRecursionDesired) != 0;
  query.checking_disabled = (flags & kCheckingDisabled) != 0;
  query.opcode = (flags >> 11) & 15;
  rcode = Rcode::kNotImp;
  if (query.opcode != 0) return Parsed::kRefuse;
  rcode = Rcode::kFormErr;
  uint16_t additional = Get16(packet, 10);
  if (Get16(packet, 4) != 1 || Get16(packet, 6) != 0 || Get16(packet, 8) != 0 ||
      additional > kMaxAdditional) {
    return Parsed::kRefuse;
  }
  size_t at = ParseQuestionName(packet, kHeaderSize, query);
  if (at == 0 || at + 4 > packet.size()) return Parsed::kRefuse;
  query.type = Get16(packet, at);
  query.qclass = Get16(packet, at + 2);
  query.question = packet.substr(kHeaderSize, at + 4 - kHeaderSize);
  if (!ParseAdditional(packet, at + 4, additional, query)) return Parsed::kRefuse;
  rcode = Judge(query);
  return rcode == Rcode::kNoError ? Parsed::kQuery : Parsed::kRefuse;
}

std::string_view RcodeName(Rcode rcode) {
  switch (rcode) {
    case Rcode::kNoError:
      return "NOERROR";
    case Rcode::kFormErr:
      return "FORMERR";
    case Rcode::kServFail:
      return "SERVFAIL";
    case Rcode::kNxDomain:
      return "NXDOMAIN";
    case Rcode::kNotImp:
      return "NOTIMP";
    case Rcode::kRefused:
      return "REFUSED";
    case Rcode::kBadVers:
      return "BADVERS";
  }
  return "other";
}

std::string_view TypeName(uint16_t type) {
  struct Row {
    uint16_t type;
    std::string_view name;
  };
  static constexpr Row kRows[] = {
      {kTypeA, "A"},       {kTypeAaaa, "AAAA"}, {15, "MX"},        {kTypeSoa, "SOA"}, {kTypeCname, "CNAME"},
      {kTypePtr, "PTR"},   {kTypeTxt, "TXT"},   {kTypeNs, "NS"},   {kTypeSrv, "SRV"}, {43, "DS"},
      {48, "DNSKEY"},      {46, "RRSIG"},       {47, "NSEC"},      {50, "NSEC3"},     {65, "HTTPS"},
      {kTypeIxfr, "IXFR"}, {kTypeAxfr, "AXFR"}, {kTypeAny, "ANY"},
  };
  for (const Row& row : kRows) {
    if (row.type == type) return row.name;
  }
  return "other";
}

}  // namespace keelson::proxy::dns

#include "proxy/dns/testing/messages.h"

#include <ldns/ldns.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "proxy/dns/message/stored_answer.h"

namespace keelson::proxy::dns {
namespace {

// "name.\t5\tIN\tA\t1.2.3.4\n" as "name. 5 A 1.2.3.4".
std::vector<std::string> Texts(const ldns_rr_list* list) {
  std::vector<std::string> out;
  for (size_t i = 0; list && i < ldns_rr_list_rr_count(list); ++i) {
    std::unique_ptr<char, void (*)(void*)> text(ldns_rr2str(ldns_rr_list_rr(list, i)), std::free);
    std::string line = text ? text.get() : "(not printable)";  // ldns takes some records that it cannot print
    if (size_t in = line.find("\tIN\t"); in != std::string::npos) line.erase(in, 3);
    std::replace(line.begin(), line.end(), '\t', ' ');
    line.erase(line.find_last_not_of("\n ") + 1);
    out.push_back(line);
  }
  return out;
}

}  // namespace

std::string QueryPacket(const std::string& name, uint16_t type, QueryOptions options) {
  std::string out;
  for (uint16_t word : {options.id, uint16_t{0x0100}, uint16_t{1}, uint16_t{0}, uint16_t{0}}) {
    Append16(out, word);
  }
  Append16(out, options.edns ? 1 : 0);
  for (size_t at = 0; at < name.size();) {  // keeps the case
    size_t dot = std::min(name.find('.', at), name.size());
    out += static_cast<char>(dot - at);
    out += name.substr(at, dot - at);
    at = dot + 1;
  }
  out += '\0';
  Append16(out, type);
  Append16(out, kClassIn);
  if (!options.edns) return out;
  out += '\0';
  for (uint16_t word : {uint16_t{kTypeOpt}, options.udp_size, uint16_t{0},
                        static_cast<uint16_t>(options.dnssec_ok ? 0x8000 : 0), uint16_t{0}}) {
    Append16(out, word);
  }
  return out;
}

Decoded Decode(std::string_view packet) {
  Decoded out;
  ldns_pkt* raw = nullptr;
  if (ldns_wire2pkt(&raw, reinterpret_cast<const uint8_t*>(packet.data()), packet.size()) != LDNS_STATUS_OK) {
    return out;
  }
  std::unique_ptr<ldns_pkt, void (*)(ldns_pkt*)> message(raw, ldns_pkt_free);
  out.valid = true;
  unsigned rcode = ldns_pkt_get_rcode(raw) + (ldns_pkt_edns_extended_rcode(raw) << 4);
  out.rcode = RcodeName(static_cast<Rcode>(rcode));
  out.authoritative = ldns_pkt_aa(raw);
  out.truncated = ldns_pkt_tc(raw);
  out.edns = ldns_pkt_edns(raw);
  out.id = ldns_pkt_id(raw);
  out.answer = Texts(ldns_pkt_answer(raw));
  out.authority = Texts(ldns_pkt_authority(raw));
  out.additional = Texts(ldns_pkt_additional(raw));
  return out;
}

std::string AnswerPacket(std::string_view packet, Rcode rcode, const std::vector<TestRecord>& answer,
                         const std::vector<TestRecord>& authority, bool truncated) {
  Query query;
  Rcode unused;
  ParseQuery(packet, query, unused);
  std::string buffer(kMaxTcpSize, '\0');
  AnswerWriter writer(query, buffer, buffer.size());
  std::deque<Name> names;
  for (const auto& [section, records] :
       {std::pair(Section::kAnswer, &answer), std::pair(Section::kAuthority, &authority)}) {
    for (const TestRecord& record : *records) {
      writer.Add(section, names.emplace_back(*ParseName(record.owner)), record.type, record.ttl,
                 record.rdata);
    }
  }
  buffer.resize(writer.Finish(rcode, false));
  if (truncated) Set16(buffer.data() + 2, Get16(buffer, 2) | 0x0200);
  return buffer;
}

}  // namespace keelson::proxy::dns

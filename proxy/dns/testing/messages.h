// Questions and answers in tests. ldns reads the answers, so that the writer is not checked against itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proxy/dns/message/message.h"

namespace keelson::proxy::dns {

struct QueryOptions {
  bool edns = false;
  uint16_t udp_size = 1232;
  bool dnssec_ok = false;
  uint16_t id = 0x1234;
};
std::string QueryPacket(const std::string& name, uint16_t type, QueryOptions options = {});

struct Decoded {
  bool valid = false;  // else nothing below is set
  std::string rcode;   // "NOERROR"
  bool authoritative = false, truncated = false, edns = false;
  uint16_t id = 0;
  std::vector<std::string> answer, authority, additional;  // "name. TTL TYPE data"
};
Decoded Decode(std::string_view packet);

// One record of the answer of a test's server.
struct TestRecord {
  std::string owner;
  uint16_t type;
  uint32_t ttl;
  std::string rdata;
};
// An answer to `query` with these records.
std::string AnswerPacket(std::string_view query, Rcode rcode, const std::vector<TestRecord>& answer,
                         const std::vector<TestRecord>& authority = {}, bool truncated = false);

}  // namespace keelson::proxy::dns

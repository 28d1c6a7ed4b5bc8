// Reads back which addresses an answer gives for the name that was asked for. Pure.
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "lib/base/ip.h"
#include "proxy/dns/message/name.h"

namespace keelson::proxy::dns {

struct AnswerAddresses {
  struct Entry {
    IpAddress address;
    std::chrono::seconds ttl{0};  // the least one on the way to the record
  };
  Name name;  // of the question
  std::vector<Entry> entries;
};

// Records of the question's name, or of the name that its CNAME records lead to; other records of the answer do not
// count. Empty for questions of other types than A and AAAA, for errors and for what is malformed.
AnswerAddresses AddressesIn(std::string_view answer);

}  // namespace keelson::proxy::dns

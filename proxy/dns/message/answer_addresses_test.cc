#include "proxy/dns/message/answer_addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proxy/dns/testing/messages.h"

namespace keelson::proxy::dns {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const char kA[] = "\xC0\x00\x02\x01", kB[] = "\xC0\x00\x02\x02";  // 192.0.2.1, 192.0.2.2

std::string Bytes(const char* address) { return {address, 4}; }
std::string Wire(const char* name) { return *ParseName(name); }

std::vector<std::string> Found(const std::string& packet) {
  std::vector<std::string> out;
  for (const auto& entry : AddressesIn(packet).entries) {
    out.push_back(entry.address.ToString() + " " + std::to_string(entry.ttl.count()));
  }
  return out;
}
std::vector<std::string> Found(const std::vector<TestRecord>& records, uint16_t type = kTypeA) {
  return Found(AnswerPacket(QueryPacket("www.example.com", type), Rcode::kNoError, records));
}

TEST(AnswerAddresses, OfTheNameThatWasAskedFor) {
  const std::vector<TestRecord> records = {{"www.example.com", kTypeA, 60, Bytes(kA)},
                                           {"WWW.Example.COM", kTypeA, 30, Bytes(kB)},
                                           {"other.example.com", kTypeA, 60, Bytes(kA)}};
  EXPECT_THAT(Found(records), ElementsAre("192.0.2.1 60", "192.0.2.2 30"));
  EXPECT_EQ(AddressesIn(AnswerPacket(QueryPacket("WWW.example.com", kTypeA), Rcode::kNoError, records)).name,
            Wire("www.example.com"));
  EXPECT_THAT(Found({{"www.example.com", kTypeAaaa, 5, std::string(15, '\0') + '\1'}}, kTypeAaaa),
              ElementsAre("::1 5"));
}

TEST(AnswerAddresses, BehindCnamesWithTheLeastTtl) {
  EXPECT_THAT(Found({{"www.example.com", kTypeCname, 20, Wire("a.example.net")},
                     {"a.example.net", kTypeCname, 50, Wire("b.example.net")},
                     {"b.example.net", kTypeA, 60, Bytes(kA)},
                     {"c.example.net", kTypeA, 60, Bytes(kB)}}),
              ElementsAre("192.0.2.1 20"));
  EXPECT_THAT(Found({{"www.example.com", kTypeCname, 20, Wire("a.example.net")},
                     {"a.example.net", kTypeCname, 20, Wire("www.example.com")}}),
              IsEmpty())
      << "a loop";
  EXPECT_THAT(Found({{"a.example.net", kTypeA, 60, Bytes(kA)}}), IsEmpty()) << "nothing leads there";
}

TEST(AnswerAddresses, NothingElseCounts) {
  const std::vector<TestRecord> record = {{"www.example.com", kTypeA, 60, Bytes(kA)}};
  EXPECT_THAT(Found(AnswerPacket(QueryPacket("www.example.com", kTypeA), Rcode::kServFail, record)),
              IsEmpty());
  EXPECT_THAT(Found(record, kTypeTxt), IsEmpty());
  EXPECT_THAT(Found(record, kTypeAaaa), IsEmpty()) << "an address of the other family";
  EXPECT_THAT(Found(QueryPacket("www.example.com", kTypeA)), IsEmpty());
  // Cut anywhere, or with any byte changed, an answer is read without harm.
  const std::string whole = AnswerPacket(
      QueryPacket("www.example.com", kTypeA), Rcode::kNoError,
      {{"www.example.com", kTypeCname, 20, Wire("a.example.net")}, {"a.example.net", kTypeA, 60, Bytes(kA)}});
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(Found(whole.substr(0, size)), IsEmpty()) << size;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int value : {0, 1, 0x3F, 0xC0, 0xFF}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(value);
      EXPECT_LE(Found(changed).size(), 1u);
    }
  }
}

}  // namespace
}  // namespace keelson::proxy::dns

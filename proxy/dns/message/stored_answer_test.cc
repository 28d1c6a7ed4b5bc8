#include "proxy/dns/message/stored_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proxy/dns/testing/messages.h"

namespace keelson::proxy::dns {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

const Question kQuestion{*ParseName("www.example.com"), kTypeA};

std::string Soa(uint32_t minimum) {
  std::string out = *ParseName("ns.example.com") + *ParseName("admin.example.com");
  for (uint32_t value : {1u, 2u, 3u, 4u, minimum}) Append32(out, value);
  return out;
}

std::string Reply(Rcode rcode, const std::vector<TestRecord>& answer,
                  const std::vector<TestRecord>& authority = {}) {
  return AnswerPacket(QuestionPacket(kQuestion, 7), rcode, answer, authority);
}

TEST(StoredAnswerTest, KnowsHowLongAnAnswerHolds) {
  const TestRecord a{"www.example.com", kTypeA, 300, "1234"};
  const TestRecord cname{"www.example.com", kTypeCname, 20, *ParseName("x.example.com")};
  const TestRecord soa{"example.com", kTypeSoa, 600, Soa(60)};
  struct Case {
    const char* what;
    Rcode rcode;
    std::vector<TestRecord> answer, authority;
    bool cacheable, negative;
    int ttl;
  };
  for (const Case& c : std::vector<Case>{
           {"answer", Rcode::kNoError, {a}, {}, true, false, 300},
           {"with an alias",
            Rcode::kNoError,
            {cname, {"x.example.com", kTypeA, 300, "1234"}},
            {},
            true,
            false,
            20},
           {"no name", Rcode::kNxDomain, {}, {soa}, true, true, 60},
           {"no data", Rcode::kNoError, {}, {soa}, true, true, 60},
           {"no data behind an alias", Rcode::kNoError, {cname}, {soa}, true, true, 20},
           {"no SOA", Rcode::kNxDomain, {}, {}, false, true, 0},
           {"failure", Rcode::kServFail, {}, {soa}, false, false, 0},
           {"TTL with the top bit",
            Rcode::kNoError,
            {{"www.example.com", kTypeA, 0x80000000u, "1234"}},
            {},
            true,
            false,
            0},
       }) {
    Result<StoredAnswer> out = StoreAnswer(Reply(c.rcode, c.answer, c.authority), kQuestion, 7);
    ASSERT_TRUE(out) << c.what << out.error().message();
    EXPECT_EQ(out->cacheable, c.cacheable) << c.what;
    EXPECT_EQ(out->negative, c.negative) << c.what;
    EXPECT_EQ(out->ttl, seconds(c.ttl)) << c.what;
  }
}

TEST(StoredAnswerTest, RefusesWhatIsNoAnswer) {
  std::string good = Reply(Rcode::kNoError, {{"www.example.com", kTypeA, 300, "1234"}});
  ASSERT_TRUE(StoreAnswer(good, kQuestion, 7));
  EXPECT_FALSE(StoreAnswer(good, kQuestion, 8));
  EXPECT_FALSE(StoreAnswer(good, {*ParseName("other.example.com"), kTypeA}, 7));
  EXPECT_FALSE(StoreAnswer(good, {kQuestion.name, kTypeAaaa}, 7));
  EXPECT_FALSE(StoreAnswer(QuestionPacket(kQuestion, 7), kQuestion, 7));
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(StoreAnswer(good.substr(0, size), kQuestion, 7)) << size;
  }
}

class WriteTest : public ::testing::Test {
 protected:
  Decoded Write(const StoredAnswer& answer, bool edns, size_t limit, int age = 0) {
    packet_ = QueryPacket("WWW.example.com", kTypeA, {.edns = edns, .id = 99});
    Query query;
    Rcode rcode;
    EXPECT_EQ(ParseQuery(packet_, query, rcode), Parsed::kQuery);
    size_t size = WriteStored(answer, query, seconds(age), buffer_, limit);
    EXPECT_LE(size, limit);
    question_ = std::string(buffer_ + kHeaderSize, query.question.size());
    EXPECT_EQ(question_, query.question);
    return Decode({buffer_, size});
  }
  StoredAnswer answer_ =
      *StoreAnswer(Reply(Rcode::kNoError, {{"www.example.com", kTypeCname, 20, *ParseName("x.example.com")},
                                           {"x.example.com", kTypeA, 300, "\x01\x02\x03\x04"}}),
                   kQuestion, 7);
  std::string packet_, question_;
  char buffer_[4096];
};

TEST_F(WriteTest, GivesItToWhoeverAsks) {
  for (bool edns : {false, true}) {
    Decoded out = Write(answer_, edns, 512, 15);
    ASSERT_TRUE(out.valid);
    EXPECT_EQ(out.id, 99);
    EXPECT_EQ(out.edns, edns);
    EXPECT_FALSE(out.authoritative);
    ASSERT_EQ(out.answer.size(), 2u);
    EXPECT_EQ(out.answer[0].substr(out.answer[0].find(' ')), " 5 CNAME x.example.com.");
    EXPECT_EQ(out.answer[1], "x.example.com. 285 A 1.2.3.4");
  }
  EXPECT_EQ(Write(answer_, true, 512, 400).answer[1], "x.example.com. 0 A 1.2.3.4");
}

TEST_F(WriteTest, ADenialDoesNotHoldAnew) {
  answer_ =
      *StoreAnswer(Reply(Rcode::kNxDomain, {}, {{"example.com", kTypeSoa, 600, Soa(60)}}), kQuestion, 7);
  for (auto [age, left] : {std::pair(0, " 60 SOA "), std::pair(59, " 1 SOA ")}) {
    Decoded out = Write(answer_, false, 512, age);
    EXPECT_EQ(out.rcode, "NXDOMAIN");
    ASSERT_EQ(out.authority.size(), 1u);
    EXPECT_THAT(out.authority[0], testing::HasSubstr(left));
  }
}

TEST_F(WriteTest, CutsWhatIsTooLarge) {
  Decoded out = Write(answer_, true, 70);
  EXPECT_TRUE(out.valid);
  EXPECT_TRUE(out.truncated);
  EXPECT_TRUE(out.answer.empty());
}

TEST_F(WriteTest, GoesBehindAnAlias) {
  packet_ = QueryPacket("out.default.svc.cluster.local", kTypeA);
  Query query;
  Rcode rcode;
  ParseQuery(packet_, query, rcode);
  AnswerWriter writer(query, buffer_, sizeof buffer_);
  writer.Add(Section::kAnswer, query.name(), kTypeCname, 5, {}, kQuestion.name, true);
  std::deque<Name> names;
  ASSERT_TRUE(AppendStored(answer_, seconds(10), writer, names));
  EXPECT_THAT(Decode({buffer_, writer.Finish(Rcode::kNoError, true)}).answer,
              ElementsAre("out.default.svc.cluster.local. 5 CNAME www.example.com.",
                          "www.example.com. 10 CNAME x.example.com.", "x.example.com. 290 A 1.2.3.4"));
}

}  // namespace
}  // namespace keelson::proxy::dns

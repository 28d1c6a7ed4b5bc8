#include "proxy/dns/message/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proxy/dns/testing/messages.h"

namespace keelson::proxy::dns {
namespace {

TEST(NameTest, ParsesAndPrints) {
  EXPECT_EQ(*ParseName("Www.Example.com."), Name("\x03www\x07"
                                                 "example\x03"
                                                 "com\0",
                                                 17));
  EXPECT_EQ(NameText(*ParseName("a.b")), "a.b.");
  EXPECT_EQ(*ParseName(""), Name(1, '\0'));
  EXPECT_EQ(NameText(Name(1, '\0')), ".");
  EXPECT_EQ(NameText(Join("a.b", Name(1, '\0'))), "a\\046b.");
  for (const std::string& bad :
       {std::string("a..b"), std::string(".a"), std::string(64, 'x'), std::string("a.."),
        std::string(63, 'x') + "." + std::string(63, 'x') + "." + std::string(63, 'x') + "." +
            std::string(63, 'x')}) {
    EXPECT_FALSE(ParseName(bad)) << bad;
  }
}

TEST(NameTest, EndsWithWholeLabels) {
  Name zone = *ParseName("cluster.local");
  EXPECT_TRUE(EndsWith(*ParseName("a.cluster.local"), zone));
  EXPECT_TRUE(EndsWith(zone, zone));
  EXPECT_FALSE(EndsWith(*ParseName("acluster.local"), zone));
  EXPECT_FALSE(EndsWith(*ParseName("local"), zone));
  EXPECT_TRUE(EndsWith(zone, Name(1, '\0')));
}

TEST(ParseQueryTest, ReadsNameTypeAndEdns) {
  std::string packet =
      QueryPacket("WWW.Example.com", kTypeAaaa, {.edns = true, .udp_size = 4096, .dnssec_ok = true});
  Query query;
  Rcode rcode;
  ASSERT_EQ(ParseQuery(packet, query, rcode), Parsed::kQuery);
  EXPECT_EQ(NameText(query.name()), "www.example.com.");
  EXPECT_EQ(query.type, kTypeAaaa);
  EXPECT_TRUE(query.recursion_desired);
  EXPECT_TRUE(query.dnssec_ok);
  EXPECT_EQ(query.Limit(false), kMaxUdpSize);
  EXPECT_EQ(query.Limit(true), kMaxTcpSize);
}

TEST(ParseQueryTest, LimitsUdpAnswers) {
  struct Case {
    bool edns;
    uint16_t size;
    size_t limit;
  };
  for (const Case& c : {Case{false, 0, 512}, {true, 100, 512}, {true, 1000, 1000}, {true, 65000, 1232}}) {
    std::string packet = QueryPacket("a", kTypeA, {.edns = c.edns, .udp_size = c.size});
    Query query;
    Rcode rcode;
    ASSERT_EQ(ParseQuery(packet, query, rcode), Parsed::kQuery);
    EXPECT_EQ(query.Limit(false), c.limit);
  }
}

TEST(ParseQueryTest, RefusesWhatItCannotAnswer) {
  const std::string good = QueryPacket("a.example", kTypeA, {.edns = true});
  auto with = [&](size_t at, uint16_t value) {
    std::string out = good;
    Set16(out.data() + at, value);
    return out;
  };
  std::string pointer = good;
  pointer[12] = '\xC0';
  const size_t type_at = 12 + 11, opt_at = type_at + 4;
  std::string version = good;
  version[opt_at + 6] = 1;
  std::string two_opts = good + good.substr(opt_at);
  Set16(two_opts.data() + 10, 2);
  std::string named_opt = good;
  named_opt.insert(opt_at, "\x01x", 2);
  struct Case {
    const char* what;
    std::string packet;
    Parsed parsed;
    Rcode rcode;
  };
  for (const Case& c : {
           Case{"short", good.substr(0, 11), Parsed::kDrop, Rcode::kNoError},
           {"an answer", with(2, 0x8100), Parsed::kDrop, Rcode::kNoError},
           {"an update", with(2, 5 << 11), Parsed::kRefuse, Rcode::kNotImp},
           {"no question", with(4, 0), Parsed::kRefuse, Rcode::kFormErr},
           {"two questions", with(4, 2), Parsed::kRefuse, Rcode::kFormErr},
           {"an answer record", with(6, 1), Parsed::kRefuse, Rcode::kFormErr},
           {"many additional records", with(10, 3), Parsed::kRefuse, Rcode::kFormErr},
           {"missing OPT", good.substr(0, opt_at), Parsed::kRefuse, Rcode::kFormErr},
           {"cut OPT", good.substr(0, good.size() - 1), Parsed::kRefuse, Rcode::kFormErr},
           {"two OPTs", two_opts, Parsed::kRefuse, Rcode::kFormErr},
           {"OPT with a name", named_opt, Parsed::kRefuse, Rcode::kFormErr},
           {"pointer", pointer, Parsed::kRefuse, Rcode::kFormErr},
           {"cut name", good.substr(0, 15), Parsed::kRefuse, Rcode::kFormErr},
           {"EDNS version 1", version, Parsed::kRefuse, Rcode::kBadVers},
           {"class CH", with(type_at + 2, 3), Parsed::kRefuse, Rcode::kRefused},
           {"AXFR", with(type_at, kTypeAxfr), Parsed::kRefuse, Rcode::kRefused},
           {"MAILA", with(type_at, 254), Parsed::kRefuse, Rcode::kNotImp},
           {"OPT asked for", with(type_at, kTypeOpt), Parsed::kRefuse, Rcode::kFormErr},
       }) {
    Query query;
    Rcode rcode = Rcode::kNoError;
    EXPECT_EQ(ParseQuery(c.packet, query, rcode), c.parsed) << c.what;
    if (c.parsed == Parsed::kRefuse) {
      EXPECT_EQ(rcode, c.rcode) << c.what;
      char buffer[512];
      size_t size = AnswerWriter(query, buffer, sizeof buffer).Finish(rcode, false);
      EXPECT_TRUE(Decode({buffer, size}).valid) << c.what;
    }
  }
}

class WriterTest : public ::testing::Test {
 protected:
  void Ask(const std::string& name, bool edns = false) {
    packet_ = QueryPacket(name, kTypeSrv, {.edns = edns});
    Rcode rcode;
    ASSERT_EQ(ParseQuery(packet_, query_, rcode), Parsed::kQuery);
  }
  std::string packet_;
  Query query_;
  char buffer_[4096];
};

TEST_F(WriterTest, CompressesOwnersAndSomeTargets) {
  Ask("_http._tcp.Web.default.svc.cluster.local");
  Name target = *ParseName("web.default.svc.cluster.local"), other = *ParseName("x.example");
  AnswerWriter writer(query_, buffer_, sizeof buffer_);
  writer.Add(Section::kAnswer, query_.name(), kTypeSrv, 5, std::string("\0\0\0\x64\0\x50", 6), target);
  writer.Add(Section::kAnswer, query_.name(), kTypeCname, 5, {}, other, true);
  writer.Add(Section::kAdditional, target, kTypeA, 5, "\x0a\x01\x02\x03");
  writer.Add(Section::kAdditional, other, kTypeA, 5, "\x0a\x01\x02\x04");
  size_t size = writer.Finish(Rcode::kNoError, true);
  Decoded out = Decode({buffer_, size});
  // Owners are pointers to the question, so in the case that was asked for.
  EXPECT_THAT(out.answer,
              testing::ElementsAre(
                  "_http._tcp.Web.default.svc.cluster.local. 5 SRV 0 100 80 web.default.svc.cluster.local.",
                  "_http._tcp.Web.default.svc.cluster.local. 5 CNAME x.example."));
  EXPECT_THAT(out.additional,
              testing::ElementsAre("Web.default.svc.cluster.local. 5 A 10.1.2.3", "x.example. 5 A 10.1.2.4"));
  EXPECT_TRUE(out.authoritative);
  // Header and question; the SRV's target whole, every other name but one as a pointer.
  EXPECT_EQ(size, 12 + packet_.size() - 12 + (12 + 6 + target.size()) + (12 + other.size()) + 16 + 16);
}

TEST_F(WriterTest, CutsAtWholeRecords) {
  Ask("a", true);
  const size_t fixed = packet_.size();  // an answer has the same question and OPT
  AnswerWriter writer(query_, buffer_, fixed + 40);
  std::string records =
      RecordOf(kTypeA, 5, "1234") + RecordOf(kTypeA, 5, "1235") + RecordOf(kTypeA, 5, "1236");
  writer.AddRecords(Section::kAnswer, records, 16);
  EXPECT_FALSE(writer.Add(Section::kAdditional, query_.name(), kTypeA, 5, "1237"));
  Decoded out = Decode({buffer_, writer.Finish(Rcode::kNoError, true)});
  EXPECT_TRUE(out.truncated);
  EXPECT_EQ(out.answer.size(), 2u);
  EXPECT_TRUE(out.edns);
}

}  // namespace
}  // namespace keelson::proxy::dns
